# SPDX-License-Identifier: MIT
"""Threads and the Queue of an inline worker: whatever they do with it meets nothing of the
worker's. Each of these lost jobs, hung or crashed while the worker ran on the Queue's own handle."""
from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for
from stores import KINDS, fresh

from jobqueue import Job, Queue, State, Worker

PUSHERS = 4
EACH = 120


@pytest.fixture(params=[*KINDS, "memory"])
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "memory":
        yield "memory:"
    else:
        yield from fresh(request.param, folder)


def in_threads(count: int, what: Callable[[int], Any]) -> list[threading.Thread]:
    threads = [threading.Thread(target=what, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs in a call of the Queue"


def test_threads_and_handlers_push_while_the_worker_runs(place: str) -> None:
    """Rules B1, G8: every job that was pushed ran once, whoever pushed it through the one Queue."""
    queue, ran, failed = Queue(place), Counter[str](), list[BaseException]()
    worker = Worker(queue, processes=0, memory=0, output="quiet", sleep=0.01)

    def first(job: Job, payload: Any) -> None:
        job.extend()
        assert not job.is_cancelled()
        queue.push("second", payload)  # through the same Queue, inside of the worker
        ran["first"] += 1

    def second(job: Job, payload: Any) -> None:
        ran[str(payload)] += 1
        if sum(ran.values()) == 2 * PUSHERS * EACH:
            worker.stop()

    def push(n: int) -> None:
        try:
            for i in range(EACH):
                queue.push("first", f"{n}-{i}", priority=i % 3)
                if i % 20 == 0:
                    queue.stats("default")
        except BaseException as error:
            failed.append(error)
            worker.stop()

    worker.handle("first", first).handle("second", second)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = in_threads(PUSHERS, push)
        assert worker.run(max_time=90) == 0
        join(threads)
    finally:
        sys.setswitchinterval(interval)
    assert not failed
    assert ran.pop("first") == PUSHERS * EACH
    assert len(ran) == PUSHERS * EACH and set(ran.values()) == {1}
    assert queue.stats("default").backlog == 0
    assert worker.statistics()["pushed"] == 2 * PUSHERS * EACH


def test_a_push_by_a_thread_wakes_an_idle_worker(place: str) -> None:
    """Rules C7, C9: the thread does not wait for the worker's wait, nor the job for `sleep`."""
    queue, took = Queue(place), list[float]()
    worker = Worker(queue, processes=0, memory=0, output="quiet", sleep=0.2)
    worker.handle("note", lambda job, at: took.append(time.monotonic() - at))
    calls: list[float] = []

    def push(_: int) -> None:
        for _ in range(3):
            time.sleep(0.3)  # the worker is idle by then: what is timed begins after it
            begun = time.monotonic()
            queue.push("note", begun)
            calls.append(time.monotonic() - begun)
        wait_for(lambda: len(took) == 3, "three jobs")
        worker.stop()

    threads = in_threads(1, push)
    begun = time.monotonic()
    assert worker.run(max_time=60) == 0
    join(threads)
    assert len(took) == 3 and time.monotonic() - begun < 8  # an idle worker looks every 10 s
    assert min(calls) < 1, f"a push took {calls} s"


def test_a_thread_stops_an_idle_worker(place: str) -> None:
    """Rule H1: at once, though it waits for jobs, and with `drain` it ends the running handler."""
    queue = Queue(place)
    worker = Worker(queue, processes=0, memory=0, output="quiet")

    def stop(_: int) -> None:
        wait_for(worker.ready, "the worker")
        time.sleep(0.1)
        worker.stop()

    threads = in_threads(1, stop)
    begun = time.monotonic()
    assert worker.run(max_time=60) == 0
    join(threads)
    assert time.monotonic() - begun < 8  # an idle worker looks every 10 s


@pytest.mark.parametrize("processes", [0, 1])
def test_a_thread_stops_a_worker_that_is_just_starting(folder: Path, processes: int) -> None:
    """Rule H1: at any moment of a run, and of the next one's beginning; it ends, and nothing
    crashes over what is being made (inline it did within a few runs)."""
    queue, over = Queue(f"sqlite:{folder}/queue.db"), threading.Event()
    worker = Worker(queue, processes=processes, output="quiet", drain=5)

    def nag(_: int) -> None:
        while not over.is_set():
            worker.stop()
            worker.ready()
            assert worker.statistics()["received"] == 0

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = in_threads(1, nag)
        begun = time.monotonic()
        for _ in range(2 if processes else 60):
            assert worker.run(max_time=60) == 0
        over.set()
        join(threads)
    finally:
        sys.setswitchinterval(interval)
    assert time.monotonic() - begun < 50


def test_a_thread_that_stops_the_worker_begins_the_drain(queue: Queue) -> None:
    """Rule H1: `drain` seconds after that the handler gets its exception."""
    worker = Worker(queue, processes=0, memory=0, output="quiet", drain=0.2)
    began = threading.Event()

    def sleeps(job: Job, payload: Any) -> None:
        began.set()
        time.sleep(60)

    def stop(_: int) -> None:
        began.wait(30)
        worker.stop()

    worker.handle("sleeps", sleeps)
    id = queue.push("sleeps")
    threads = in_threads(1, stop)
    begun = time.monotonic()
    assert worker.run(max_time=60) == 0
    join(threads)
    assert time.monotonic() - begun < 30
    info = queue.find(id)
    assert info is not None and info.state is State.READY and info.failures == 0


def test_what_hears_the_lines_may_push(place: str) -> None:
    """Rule B1: lines come from inside of the worker's calls."""
    queue, lines = Queue(place), list[str]()
    ran: list[Any] = []

    def line(text: str) -> None:
        lines.append(text)
        if len(lines) < 5:
            queue.push("heard", len(lines))

    worker = Worker(queue, processes=0, memory=0, output=line)
    worker.handle("heard", lambda job, payload: ran.append(payload))
    assert worker.run(stop_when_empty=True, max_time=60) == 0
    assert worker.run(stop_when_empty=True, max_time=60) == 0
    assert sorted(ran) == [1, 2, 3, 4]


def test_a_thread_outlives_its_handler(place: str) -> None:
    """Rules C11, D3: its calls of the ended job are errors of that thread, and nobody else's."""
    queue, errors, ran = Queue(place), list[BaseException](), list[Any]()
    worker = Worker(queue, processes=0, memory=0, output="quiet")
    threads: list[threading.Thread] = []

    def leaves_one(job: Job, payload: Any) -> None:
        def goes_on(_: int) -> None:
            try:
                while True:
                    job.extend()
                    job.is_cancelled()
                    job.progress(1)
            except RuntimeError as error:
                errors.append(error)

        ran.append(payload)
        threads.extend(in_threads(1, goes_on))
        time.sleep(0.002)

    worker.handle("leaves", leaves_one)
    for n in range(20):
        queue.push("leaves", n, track=n % 2 == 0)
    assert worker.run(stop_when_empty=True, max_time=60) == 0
    join(threads)
    assert sorted(ran) == list(range(20))
    assert [str(error) for error in errors] == ["the job has ended"] * 20


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sqlite"])
def test_a_handlers_fork_uses_the_queue(kind: str, folder: Path) -> None:
    """Rule D7: though a thread of the parent's holds the handle when it forks. (SQLite has locks of
    its own that do not survive this.)"""
    for place in fresh(kind, folder):
        fork_beside_threads(Queue(place))


def fork_beside_threads(queue: Queue) -> None:
    worker = Worker(queue, processes=0, memory=0, output="quiet")
    over = threading.Event()
    statuses: list[int] = []

    def pushes(_: int) -> None:
        while not over.is_set():
            queue.push("other", queue="elsewhere")

    def forks(job: Job, payload: Any) -> None:
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            try:
                queue.push("from.the.child", queue="child")
            finally:
                os._exit(sys.exc_info()[0] is not None)
        statuses.append(os.waitpid(pid, 0)[1])

    worker.handle("forks", forks, timeout=30)
    for _ in range(20):
        queue.push("forks")
    threads = in_threads(2, pushes)
    assert worker.run(stop_when_empty=True, max_time=90) == 0
    over.set()
    join(threads)
    assert statuses == [0] * 20
    assert queue.stats("child").ready == 20


def test_the_worker_is_where_its_queue_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Queue's place is fixed when it is made: for its worker and for wait() too."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JOBQUEUE_DSN_MAIL", "sqlite:one.db")
    queue = Queue("mail")
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    monkeypatch.setenv("JOBQUEUE_DSN_MAIL", "sqlite:two.db")
    connections: list[str] = []
    worker = Worker(queue, processes=0, memory=0, output="quiet")
    worker.handle("add", lambda job, payload: payload + 1)
    worker.on("job.processed", lambda event: connections.append(event.connection))
    id = queue.push("add", 1, track=True)
    assert worker.run_next()
    assert queue.wait(id, timeout=30) == 2
    assert connections == ["mail"]
    assert not (folder / "sub" / "one.db").exists() and not (folder / "sub" / "two.db").exists()
