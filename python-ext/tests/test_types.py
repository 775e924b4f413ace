# SPDX-License-Identifier: MIT
"""Types: the package and its users under mypy --strict, the stub against the module."""
from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jobqueue
from jobqueue import _core

GOOD = """
import asyncio
from jobqueue import Job, JobInfo, Queue, State, Task, Worker, task

@task("invoice.send", queue="mail", tries=5, backoff=[10, 60])
def send_invoice(job: Job, invoice: int, to: str = "ada") -> bool:
    return job.attempt > 1

@task("log.trim")
async def trim(days: int) -> None:
    await asyncio.sleep(days)

def plain(job: Job, payload: object) -> None: ...

queue = Queue("memory:", read_timeout=1)
a: str = send_invoice.push(queue, invoice=7)
b: str = send_invoice.using(delay=10).push(queue, 7, to="grace")
c: str = trim.delay(days=3)
worker: Worker = Worker(queue, tasks=[send_invoice, trim], processes=4).handle("x", plain)
code: int = worker.run(["high", "default"], stop_when_empty=True)
info: JobInfo | None = queue.find(a)
jobs: list[JobInfo] = queue.jobs("default", State.DEAD)
async def main() -> str:
    return await queue.apush("a", {"n": 1}, delay=1)
"""
BAD = {
    'send_invoice.push(queue, invoice="seven")': "arg-type",
    "send_invoice.push(queue, odd=1)": "call-arg",
    'queue.push("a", nonsense=1)': "call-arg",
    "send_invoice.push(invoice=7)": "call-arg",
    "queue.push(7)": "arg-type",
}


def where_it_is() -> dict[str, str]:
    """mypy finds what is installed by itself, and refuses to be told of it."""
    package = Path(jobqueue.__file__).parents[1]
    return os.environ | ({} if package.name.endswith("-packages") else {"MYPYPATH": str(package)})


def mypy(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    (folder / "user.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env=where_it_is(),
    )


def test_the_package_is_typed(folder: Path) -> None:
    done = mypy(folder, "", "-p", "jobqueue")
    assert done.returncode == 0, done.stdout


def test_programs_are_checked(folder: Path) -> None:
    done = mypy(folder, GOOD, "user.py")
    assert done.returncode == 0, done.stdout
    done = mypy(folder, GOOD + "\n".join(BAD) + "\n", "user.py")
    first = GOOD.count("\n") + 1
    for i, code in enumerate(BAD.values()):
        where = f"user.py:{first + i}:"
        said = [line for line in done.stdout.splitlines() if line.startswith(where)]
        assert any(code in line for line in said), f"{list(BAD)[i]}\n{done.stdout}"


def test_the_stub_is_the_module(folder: Path) -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "jobqueue._core"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=where_it_is(),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_says_what_it_does() -> None:
    for name in jobqueue.__all__:
        found = getattr(jobqueue, name)
        if callable(found):
            assert inspect.getdoc(found), name
    for kind in (jobqueue.Queue, jobqueue.Worker, jobqueue.Job):
        for name, method in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                assert inspect.getdoc(method), f"{kind.__name__}.{name}"
                inspect.signature(method)


def test_the_module_is_of_the_stable_abi() -> None:
    assert _core.__file__ and _core.__file__.endswith(".abi3.so")
