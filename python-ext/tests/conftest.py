# SPDX-License-Identifier: MIT
"""What the tests share: a store of their own, worker programs in processes of their own, TAP."""
from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobqueue import Job, JobInfo, Queue, Worker
from tap import pytest_configure, pytest_runtest_logreport  # noqa: F401

ROOT = Path(os.environ.get("JOBQ_SRCDIR") or Path(__file__).resolve().parents[2])


@pytest.fixture(autouse=True)
def no_loop_is_left() -> Iterator[None]:
    """pytest-asyncio leaves an open one behind after each of its tests."""
    yield
    try:
        loop = asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:
        return
    if not loop.is_running():
        asyncio.set_event_loop(None)
        loop.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: nothing here is about the disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="jobqueue-", dir=base))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def dsn(folder: Path) -> str:
    return f"sqlite://{folder}/queue.db?synchronous=normal"


@pytest.fixture
def queue(dsn: str) -> Queue:
    return Queue(dsn)


class Ended:
    """A worker program that has run, and what it left in the store."""

    def __init__(self, code: int, out: str, err: str, queue: Queue, folder: Path) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.queue = queue
        self.folder = folder

    def dead(self, name: str) -> JobInfo:
        found = self.queue.dead(name=name)
        assert found, f"no dead job {name}; it said:\n{self.out}{self.err}"
        return found[0]

    def ledger(self) -> list[Any]:
        path = self.folder / "ledger"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


HEAD = """
import asyncio, contextvars, functools, json, logging, os, signal, subprocess, sys, threading, time
from jobqueue import *
queue = Queue({dsn!r})
worker = Worker(queue, processes=1, tries=1, backoff=0.05, timeout=20, output="jobs")
def note(*what):
    fd = os.open({ledger!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (json.dumps(what if len(what) > 1 else what[0]) + "\\n").encode())
    os.close(fd)
def on(name, **options):
    def add(function):
        worker.handle(name, function, **options)
        return function
    return add
"""
TAIL = """
if __name__ == "__main__":
    sys.exit(worker.run(**dict(stop_when_empty=True, max_time=60) | {options!r}))
"""


class Program:
    """A worker program: its text goes between HEAD and TAIL."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self.queue = Queue(dsn)

    def write(self, text: str, **options: Any) -> Path:
        path = self.folder / "program.py"
        head = HEAD.format(dsn=self.dsn, ledger=str(self.folder / "ledger"))
        path.write_text(head + textwrap.dedent(text) + TAIL.format(options=options))
        return path

    def start(self, text: str, **options: Any) -> subprocess.Popen[str]:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
        return subprocess.Popen(
            [sys.executable, str(self.write(text, **options))],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def end(self, process: subprocess.Popen[str], budget: float = 90) -> Ended:
        try:
            out, err = process.communicate(timeout=budget)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"the worker did not end within {budget} s:\n{out}{err}") from None
        assert "ResourceWarning" not in err, err
        return Ended(process.returncode, out, err, self.queue, self.folder)

    def run(self, text: str, **options: Any) -> Ended:
        return self.end(self.start(text, **options))


@pytest.fixture
def program(folder: Path, dsn: str) -> Program:
    return Program(folder, dsn)


def wait_for(what: Callable[[], Any], text: str, budget: float = 30) -> Any:
    """Until it is true; says what it waited for when it never is."""
    end = time.monotonic() + budget
    while not (found := what()):
        assert time.monotonic() < end, f"waited {budget} s for {text}"
        time.sleep(0.01)
    return found


def run_one(
    queue: Queue, handler: Callable[..., Any], payload: Any = None, **options: Any
) -> JobInfo | None:
    """Pushes a job, runs it here, and gives back what is left of it."""
    name = re.sub(r"\W", "", getattr(handler, "__name__", "handler")) or "handler"
    worker = Worker(queue, processes=0, tries=1)
    worker.handle(name, handler, **options)
    id = queue.push(name, payload)
    assert worker.run_next()
    return queue.find(id)


def never(job: Job, payload: Any) -> None:
    raise AssertionError("this handler must not run")
