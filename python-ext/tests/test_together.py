# SPDX-License-Identifier: MIT
"""async_concurrency: several jobs of async handlers at once in one child."""
from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Program, never, wait_for
from jobqueue import Job, Queue, Worker, _core, task


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The DSN of a private Redis."""
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    tool = ROOT / "tools/server"
    start = [str(tool), "start", "redis", folder, "--owner", str(os.getpid())]
    done = subprocess.run(start, stdout=subprocess.PIPE, text=True, check=True)
    yield done.stdout.split()[-1]
    subprocess.run([str(tool), "remove", folder], check=True)


@pytest.fixture(params=["sqlite", "redis"])
def dsn(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite://{folder}/queue.db?synchronous=normal"
    if "redis" not in _core.drivers():
        pytest.skip("built without Redis")
    base: str = request.getfixturevalue("server")
    return f"{base}{'&' if '?' in base else '?'}prefix={folder.name}"


def last(queue: Queue, id: str) -> dict[str, Any]:
    info = queue.find(id)
    return info.history[-1] if info is not None and info.history else {}


def lines(program: Program) -> list[Any]:
    path = program.folder / "ledger"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_many_at_once(program: Program) -> None:
    """Rule G1: a hundred sleeps of 0.2 s in one child, fifty at a time, each with a context, an
    order of its own and its own end."""
    program.queue.push_many([("naps", {"n": i}) for i in range(100)])
    started = time.monotonic()
    ended = program.run(
        """
        mine = contextvars.ContextVar("mine")
        open = 0
        @task("naps", async_concurrency=50)
        async def naps(job: Job, n: int):
            global open
            mine.set(n)
            open += 1
            seen = open
            await asyncio.sleep(0.2)
            open -= 1
            assert mine.get() == n == job.payload["n"]
            note(n, os.getpid(), seen)
        worker.register(naps)
        """
    )
    assert ended.code == 0, ended.err
    assert time.monotonic() - started < 12  # one after the other: 20 s and the start
    ran = ended.ledger()
    assert sorted(row[0] for row in ran) == list(range(100))
    assert len({row[1] for row in ran}) == 1
    assert max(row[2] for row in ran) == 50


def test_everything_of_an_attempt(program: Program) -> None:
    """Rules D1 to D3, M1: middleware, listeners, decisions, cleanups and errors of jobs that run
    beside each other."""
    names = ["done", "fails", "hopeless", "lets_go", "gives_up", "cleans", "cancels"]
    ids = {name: program.queue.push("each", {"how": name}) for name in names}
    ended = program.run(
        """
        seen = {}
        async def around(job, payload, call_next):
            await asyncio.sleep(0.01)
            try:
                return await call_next()
            finally:
                note("around", payload["how"])
        worker.middleware(around)
        @task("each", async_concurrency=20)
        async def each(job: Job, how: str):
            job.defer(lambda: note("cleanup", how))
            await asyncio.sleep(0.1)
            if how == "fails": raise ValueError("it went wrong")
            if how == "hopeless": raise NotRetryable("never")
            if how == "lets_go" and job.releases == 0: job.release()
            if how == "gives_up": job.fail("by hand")
            if how == "cancels": raise asyncio.CancelledError()
            if how == "cleans":
                async def later():
                    await asyncio.sleep(0.01)
                    note("cleaned")
                job.defer(later)
        worker.register(each)
        async def heard(event):
            await asyncio.sleep(0)
            note(event.name, event.job.payload["how"])
        for name in ("job.processed", "job.exception", "job.released"):
            worker.on(name, heard)
        """
    )
    assert ended.code == 0, ended.err
    said = ended.ledger()
    for name in names:
        assert ["around", name] in said and ["cleanup", name] in said, name
    assert "cleaned" in said
    assert ["job.processed", "done"] in said and ["job.released", "lets_go"] in said
    assert ["job.exception", "fails"] in said and ["job.exception", "cancels"] in said
    reasons = {}
    for info in ended.queue.dead():
        reasons[info.payload["how"]] = (info.reason, info.history[-1]["outcome"])
    assert reasons == {
        "fails": ("attempts_exhausted", "failed"),
        "hopeless": ("not_retryable", "failed"),
        "gives_up": ("failed_by_handler", "failed"),
        "cancels": ("attempts_exhausted", "failed"),
    }, (reasons, ids)


def test_a_time_limit_hits_one(program: Program) -> None:
    """Rule I1: the task of the one that is over its time is cancelled; its neighbours go on in the
    same child, and so does what each of them awaits."""
    late = program.queue.push("naps", {"s": 60}, timeout=0.5)
    program.queue.push_many([("naps", {"s": 1.5})] * 5)
    ended = program.run(
        """
        @task("naps", async_concurrency=10)
        async def naps(s: float):
            try:
                async with asyncio.timeout(30):
                    await asyncio.sleep(s)
            finally:
                await asyncio.sleep(0.01)
                note(s, os.getpid())
        worker.register(naps)
        """
    )
    assert ended.code == 0, ended.err
    info = ended.dead("naps")
    assert info.id == late and info.reason == "timed_out"
    assert info.last_error is not None and info.last_error["class"] == "jobqueue.JobTimeout"
    assert "killed" not in info.last_error["message"]
    ran = ended.ledger()
    assert sorted(row[0] for row in ran) == [1.5] * 5 + [60]
    assert len({row[1] for row in ran}) == 1


def test_one_that_does_not_stop(program: Program) -> None:
    """Rule I1: it swallows the cancellation and is killed after the grace time; the others are
    given back, uncounted, and run again."""
    deaf = program.queue.push("swallows", timeout=0.5)
    program.queue.push_many([("naps", None)] * 3)
    ended = program.run(
        """
        @on("swallows", async_concurrency=10)
        async def swallows(job, payload):
            while True:
                try: await asyncio.sleep(60)
                except asyncio.CancelledError: note("swallowed")
        @on("naps", async_concurrency=10)
        async def naps(job, payload):
            await asyncio.sleep(3)
            note("nap", job.attempt, job.crashes)
        """,
        timeout_grace=0.5,
    )
    assert ended.code == 0, ended.err
    assert [info.id for info in ended.queue.dead()] == [deaf]
    assert "killed" in (last(ended.queue, deaf)["message"] or "")
    said = ended.ledger()
    assert said.count(["nap", 1, 0]) == 3 and len(said) == 4


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_the_process_dies(program: Program, how: str) -> None:
    """Rule C5: a crash for each of those that ran, marked as shared."""
    ids = program.queue.push_many([("naps", None)] * 3)
    process = program.start(
        f"""
        @on("naps", async_concurrency=10)
        async def naps(job, payload):
            note("nap")
            await asyncio.sleep(60)
        @on("dies", async_concurrency=10)
        async def dies(job, payload):
            await asyncio.sleep(0.2)
            {how}
        """,
        tries=2,
        backoff=300,
        stop_when_empty=False,
    )
    wait_for(lambda: lines(program).count("nap") == 3, "three running jobs")
    ids.append(program.queue.push("dies"))
    for id in ids:
        entry = wait_for(lambda: last(program.queue, str(id)), f"the end of {id}")
        assert entry["outcome"] == "crashed" and entry["shared"] is True, entry
    process.send_signal(signal.SIGTERM)
    assert program.end(process).code == 0


def test_sys_exit_lets_others_end(program: Program) -> None:
    """Rule D4: the one that exits has; the others end in that child, later ones run in another."""
    program.queue.push_many([("naps", None)] * 3 + [("exits", None)])
    ended = program.run(
        """
        @on("naps", async_concurrency=10)
        async def naps(job, payload):
            await asyncio.sleep(1.5)
            note("nap", os.getpid(), job.attempt)
        @on("exits", async_concurrency=10)
        async def exits(job, payload):
            await asyncio.sleep(0.5)
            worker.queue.push("after")
            sys.exit(3)
        @on("after", async_concurrency=10)
        async def after(job, payload): note("after", os.getpid(), job.attempt)
        """
    )
    assert ended.code == 0, ended.err
    assert last(ended.queue, ended.dead("exits").id)["outcome"] == "exited"
    naps = [row for row in ended.ledger() if row[0] == "nap"]
    after = [row for row in ended.ledger() if row[0] == "after"]
    assert len(naps) == 3 and len({row[1] for row in naps}) == 1
    assert {row[2] for row in naps} == {1}
    assert len(after) == 1 and after[0][1] != naps[0][1]


def test_plain_handlers_run_alone(program: Program) -> None:
    """A plain handler blocks the loop, so it never runs beside others; its time limit is thrown
    into it as ever, and async ones without the option run one at a time."""
    for i in range(30):
        program.queue.push(("naps", "plain", "single")[i % 3], timeout=20)
    late = program.queue.push("late", timeout=0.5)
    ended = program.run(
        """
        running = 0
        @on("naps", async_concurrency=10)
        async def naps(job, payload):
            global running
            running += 1
            note("naps", 0)
            await asyncio.sleep(0.1)
            running -= 1
        @on("plain")
        def plain(job, payload): note("plain", running)
        @on("single")
        async def single(job, payload):
            note("single", running)
            await asyncio.sleep(0.01)
        @on("late")
        def late(job, payload): time.sleep(60)
        """
    )
    assert ended.code == 0, ended.err
    said = ended.ledger()
    assert {(name, beside) for name, beside in said} == {("naps", 0), ("plain", 0), ("single", 0)}
    assert len(said) == 30
    info = ended.queue.find(late)
    assert info is not None and info.reason == "timed_out"
    assert "killed" not in (info.last_error or {})["message"]


def test_drain(program: Program) -> None:
    """Rule H1: TERM waits for all that run."""
    program.queue.push_many([("naps", None)] * 20)
    process = program.start(
        """
        @on("naps", async_concurrency=8)
        async def naps(job, payload):
            note("begin")
            await asyncio.sleep(1.5)
            note("end")
        """,
        stop_when_empty=False,
    )
    wait_for(lambda: lines(program).count("begin") == 8, "eight running jobs")
    process.send_signal(signal.SIGTERM)
    ended = program.end(process)
    assert ended.code == 0, ended.err
    assert ended.ledger().count("end") == 8 and len(ended.ledger()) == 16


def test_a_death_has_its_hook(program: Program) -> None:
    """Rule F6: the failed hook runs in such a child, too, and once."""
    program.queue.push_many([("fails", None)] * 3)
    ended = program.run(
        """
        async def told(info, error):
            await asyncio.sleep(0.01)
            note("told", info.id)
        @on("fails", async_concurrency=10, failed=told)
        async def fails(job, payload):
            await asyncio.sleep(0.05)
            raise ValueError("no")
        """
    )
    assert ended.code == 0, ended.err
    told = [row[1] for row in ended.ledger()]
    assert sorted(told) == sorted(info.id for info in ended.queue.dead()) and len(told) == 3


def test_payloads_stay_their_own(program: Program) -> None:
    """Small and large bodies, as many at once as there are: nobody sees another's."""
    for i in range(60):
        size = (10, 3000, 300_000)[i % 3]
        program.queue.push(
            "holds", {"i": i, "text": chr(97 + i % 26) * size}, context={"i": str(i)}
        )
    ended = program.run(
        """
        @on("holds", async_concurrency=30)
        async def holds(job, payload):
            await asyncio.sleep(0.1)
            i, text = payload["i"], payload["text"]
            size = (10, 3000, 300_000)[i % 3]
            again = queue.find(job.id)
            assert text == chr(97 + i % 26) * size == job.payload["text"]
            assert job.context == {"i": str(i)} and again.payload["i"] == i
            note(i)
        """
    )
    assert ended.code == 0, ended.err
    assert sorted(ended.ledger()) == list(range(60)), ended.out


def test_inline_one_at_a_time(queue: Queue) -> None:
    running = 0
    seen = []

    @task("a", async_concurrency=10)
    async def naps() -> None:
        nonlocal running
        running += 1
        seen.append(running)
        await asyncio.sleep(0.01)
        running -= 1

    queue.push_many([("a", None)] * 5)
    assert Worker(queue, tasks=[naps], processes=0).run(stop_when_empty=True, output="quiet") == 0
    assert seen == [1] * 5


def test_what_is_refused(queue: Queue) -> None:
    worker = Worker(queue)
    with pytest.raises(ValueError, match="no async def"):
        worker.handle("a", never, async_concurrency=2)
    with pytest.raises(ValueError, match="async_concurrency"):
        worker.handle("a", never, async_concurrency=0)

    @task("b", async_concurrency=5)
    async def later() -> None:
        pass

    def around(job: Job, payload: Any, call_next: Any) -> Any:
        return call_next()

    worker.register(later).middleware(around)
    with pytest.raises(TypeError, match="plain middleware"):
        worker.run()
