# SPDX-License-Identifier: MIT
"""PHP and Python on one store: every kind of value, mixed pools, each other's errors.

Runs on SQLite and on each server that JOBQUEUE_TEST_REDIS, _POSTGRES and _MARIADB name. PHP is
TEST_PHP_EXECUTABLE with the extension JOBQUEUE_EXTENSION; side.php is its half.
"""
from __future__ import annotations

import base64
import json
import math
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jobqueue import Job, Queue, State, Worker
from stores import KINDS, fresh

HERE = Path(__file__).resolve().parent


@pytest.fixture(params=KINDS)
def dsn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store nobody has used before."""
    yield from fresh(request.param, tmp_path)


def php_command(*arguments: str) -> list[str]:
    program, extension = os.environ.get("TEST_PHP_EXECUTABLE"), os.environ.get("JOBQUEUE_EXTENSION")
    if not program or not extension:
        pytest.skip("PHP is not here (TEST_PHP_EXECUTABLE, JOBQUEUE_EXTENSION)")
    return [program, "-d", f"extension={extension}", str(HERE / "side.php"), *arguments]


def php(*arguments: str, given: str | None = None) -> Any:
    done = subprocess.run(
        php_command(*arguments), capture_output=True, text=True, timeout=120, input=given
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


# ---- values --------------------------------------------------------------------------------------


def value(form: Any) -> Any:
    """The typed JSON form of a golden value."""
    if isinstance(form, list):
        return [value(item) for item in form]
    if not isinstance(form, dict):
        return form
    ((kind, inner),) = form.items()
    if kind == "$int":
        return int(inner)
    if kind == "$double":
        words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        return words[inner] if inner in words else struct.unpack(">d", bytes.fromhex(inner))[0]
    if kind == "$bytes":
        return base64.b64decode(inner)
    if kind == "$time":
        year, rest = inner.split("-", 1)
        return datetime.fromisoformat(f"{int(year):04}-{rest}")
    return {value(key): value(item) for key, item in inner}


def same(a: Any, b: Any) -> bool:
    """Equal with kinds and order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items())
        return len(a) == len(b) and all(same(x, y) and same(v, w) for (x, v), (y, w) in pairs)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def maps_in(form: Any) -> Iterator[dict[Any, Any]]:
    if isinstance(form, dict):
        yield form
        for item in form.values():
            yield from maps_in(item)
    elif isinstance(form, list):
        for item in form:
            yield from maps_in(item)


def through_php(found: Any) -> Any:
    """What PHP makes of it: it has one kind of string."""
    if isinstance(found, bytes):
        try:
            return found.decode()
        except UnicodeDecodeError:
            return found
    if isinstance(found, dict):
        return {key: through_php(item) for key, item in found.items()}
    return [through_php(item) for item in found] if isinstance(found, list) else found


def fits(found: Any, maps: str) -> bool:
    """Can a PHP handler with that `maps` hold it? Arrays make lists of some maps and integers of
    some strings, objects make strings of integer keys."""
    for one in maps_in(found):
        keys = list(one)
        numbers = [key for key in keys if isinstance(key, int)]
        digits = [key for key in keys if isinstance(key, str) and key.lstrip("-").isdigit()]
        if maps == "object" and numbers:
            return False
        if maps == "array" and (
            digits
            or not keys
            or keys == list(range(len(keys)))
            or any(n > 2**63 - 1 for n in numbers)
        ):
            return False
    return True


GOLDEN = {
    vector["name"]: value(vector["value"])
    for vector in json.loads((HERE / "vectors/payload.json").read_text())["good"]
}


def echo_back(queue: Queue) -> int:
    """A Python worker that pushes each "echo" back."""
    worker = Worker(queue, processes=0, tries=1, output="quiet")

    def echo(job: Job, payload: Any) -> None:
        queue.push("back", payload, queue="answers", context=job.context)

    worker.handle("echo", echo)
    n = 0
    while worker.run_next():
        n += 1
    return n


def test_php_pushes_python_handles_php_compares(dsn: str) -> None:
    """Rules A2, A5."""
    pushed = php("push", dsn)
    assert pushed > 80
    queue = Queue(dsn)
    assert echo_back(queue) == pushed and queue.dead() == []
    answer = php("compare", dsn)
    assert answer == {"compared": pushed, "odd": []}


@pytest.mark.parametrize("maps", ["array", "object"])
def test_python_pushes_php_handles_python_compares(dsn: str, maps: str) -> None:
    """Rules A2, A5."""
    values = {name: found for name, found in GOLDEN.items() if fits(found, maps)}
    assert len(values) > 80
    queue = Queue(dsn)
    queue.push_many(
        ("echo", {"name": name, "value": found}, {"context": {"trace": f"from Python, {name} é"}})
        for name, found in values.items()
    )
    php("echo", dsn, maps)
    assert queue.dead() == []
    odd, n = [], 0
    while job := queue.reserve("answers"):
        name = job.payload["name"]
        if not same(job.payload["value"], through_php(values[name])) or job.context != {
            "trace": f"from Python, {name} é"
        }:
            odd.append((name, job.payload["value"]))
        job.done()
        n += 1
    assert (odd, n) == ([], len(values))


# ---- results -------------------------------------------------------------------------------------


def test_php_pushes_python_gives_results_php_reads(dsn: str) -> None:
    """Rule N7: every kind of value, and progress."""
    ids = php("track", dsn)
    assert len(ids) > 80
    worker = Worker(Queue(dsn), processes=0, tries=1, output="quiet")

    def give(job: Job, payload: Any) -> Any:
        job.progress(12.5, "from Python \U0001f4a5")
        return payload["value"]

    worker.handle("give", give)
    while worker.run_next():
        pass
    answer = php("results", dsn, given=json.dumps(ids))
    assert answer == {"compared": len(ids), "odd": []}


@pytest.mark.parametrize("maps", ["array", "object"])
def test_python_pushes_php_gives_results_python_reads(dsn: str, maps: str) -> None:
    """Rule N7."""
    values = {name: found for name, found in GOLDEN.items() if fits(found, maps)}
    queue = Queue(dsn)
    ids = {name: queue.push("give", {"value": found}, track=True) for name, found in values.items()}
    php("give", dsn, maps)
    odd = []
    for name, id in ids.items():
        info = queue.find(id)
        assert info is not None and info.state is State.DONE and info.result_error is None, name
        assert info.progress == {"percent": 87.5, "note": "from PHP \U0001f4a5"}
        wanted = through_php(values[name])
        if not (same(info.result, wanted) and same(queue.wait(id, 0), wanted)):
            odd.append((name, info.result))
    assert odd == []


# ---- pools ---------------------------------------------------------------------------------------

POOL = """
import sys, time, os
from jobqueue import *
worker = Worker(Queue(sys.argv[1]), processes=2, output="quiet")
def note(job, payload):
    time.sleep(0.002)
    fd = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"python {job.name} {job.id}\\n".encode())
    os.close(fd)
async def anote(job, payload): note(job, payload)
worker.handle("both", note).handle("python.only", anote)
sys.exit(worker.run())
"""


def test_mixed_pools_on_one_queue(dsn: str, tmp_path: Path) -> None:
    """Rules C3, F3: each job once, by a language that knows its name."""
    ledger, program = tmp_path / "ledger", tmp_path / "pool.py"
    program.write_text(textwrap.dedent(POOL))
    queue = Queue(dsn)
    queue.migrate()
    ids: list[Any] = []
    pools = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in (
            php_command("mixed", dsn, str(ledger)),
            [sys.executable, str(program), dsn, str(ledger)],
        )
    ]

    def until(what: Callable[[], bool], text: str) -> None:
        end = time.monotonic() + 90
        while not what():
            assert time.monotonic() < end, f"waited for {text}"
            assert [pool.poll() for pool in pools] == [None, None], [
                pool.communicate() for pool in pools
            ]
            time.sleep(0.01)

    def both_have_run() -> bool:
        ids.extend(queue.push_many(("both", i) for i in range(8)))
        said = ledger.read_text() if ledger.exists() else ""
        return "php both" in said and "python both" in said

    try:
        until(lambda: len(queue.workers()) == 2, "the pools")
        for i in range(20):
            ids += [queue.push("php.only", i), queue.push("python.only", i)]
        until(both_have_run, "jobs in both pools")
        until(lambda: queue.stats("default").backlog == 0, "the last jobs")
    finally:
        for pool in pools:
            pool.send_signal(signal.SIGTERM)
        said = [pool.communicate(timeout=60)[0] for pool in pools]
    assert [pool.returncode for pool in pools] == [0, 0], said
    rows = [line.split() for line in ledger.read_text().splitlines()]
    assert (
        sorted(row[2] for row in rows) == sorted(str(id) for id in ids)
        and queue.stats("default").dead == 0
    )
    assert {row[0] for row in rows if row[1] == "both"} == {"php", "python"}
    assert {row[0] for row in rows if row[1] == "php.only"} == {"php"}
    assert {row[0] for row in rows if row[1] == "python.only"} == {"python"}


# ---- errors --------------------------------------------------------------------------------------


def test_an_error_of_php_is_read_by_python(dsn: str) -> None:
    """Rule F5."""
    queue = Queue(dsn)
    id = queue.push("php.raises", {"n": 1})
    php("raise", dsn)
    (info,) = queue.dead()
    assert info.id == id and info.reason == "attempts_exhausted" and info.payload == {"n": 1}
    assert info.last_error and info.last_error["class"] == "DomainException"
    assert info.last_error["message"] == "no such invoice \U0001f4a5"
    assert "side.php:" in str(info.last_error["where"]) and "side.php(" in str(
        info.last_error["trace"]
    )
    assert info.history[0]["outcome"] == "failed" and info.history[0]["class"] == "DomainException"


def test_an_error_of_python_is_read_by_php(dsn: str) -> None:
    """Rule F5."""
    queue = Queue(dsn)
    worker = Worker(queue, processes=0, tries=1, output="quiet")

    async def raises(job: Job, payload: Any) -> None:
        raise LookupError("no such invoice \U0001f4a5\0")

    worker.handle("python.raises", raises)
    queue.push("python.raises", {"n": 1})
    assert worker.run_next()
    told = php("dead", dsn)
    assert (told["name"], told["reason"], told["outcome"], told["payload"]) == (
        "python.raises",
        "attempts_exhausted",
        "failed",
        {"n": 1},
    )
    assert told["error"]["class"] == "LookupError" and told["error"]["message"].startswith(
        "no such invoice \U0001f4a5"
    )
    assert "test_interop.py:" in told["error"]["where"] and "in raises" in told["error"]["trace"]
