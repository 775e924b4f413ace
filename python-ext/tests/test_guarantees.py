# SPDX-License-Identifier: MIT
"""Capacity, unique keys, guards, idempotent pushes, results, progress, effects: on every store."""
from __future__ import annotations

import asyncio
import hashlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from conftest import Program, wait_for
from jobqueue import (
    DuplicateJob,
    GuardRefused,
    Job,
    JobDead,
    LeaseLost,
    NotFound,
    PayloadError,
    Queue,
    QueueError,
    QueueFull,
    State,
    WaitTimeout,
    Worker,
    _core,
    task,
)
from stores import KINDS, fresh

# name of the driver -> a statement that says whether its parameter is above five
ABOVE_FIVE = {
    "sqlite": "SELECT ? > 5",
    "postgresql": "SELECT $1::bigint > 5",
    "mysql": "SELECT ? > 5",
    "redis": "return tonumber(ARGV[1]) > 5",
}
# one that writes its parameter down, one that reads the sum of what was written
WRITE = {
    "sqlite": "INSERT INTO app (n) VALUES (?)",
    "postgresql": "INSERT INTO {schema}.app (n) VALUES ($1::int)",
    "mysql": "INSERT INTO app (n) VALUES (?)",
    "redis": "return redis.call('INCRBY', KEYS[1] .. ':app', ARGV[1])",
}
READ = {
    "sqlite": "SELECT sum(n) FROM app",
    "postgresql": "SELECT sum(n) FROM {schema}.app",
    "mysql": "SELECT CAST(sum(n) AS SIGNED) FROM app",
    "redis": "return tonumber(redis.call('GET', KEYS[1] .. ':app'))",
}


@pytest.fixture(params=KINDS)
def dsn(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    yield from fresh(request.param, folder)


@pytest.fixture
def app(dsn: str, queue: Queue) -> Callable[[dict[str, str]], str]:
    """Which of these statements is for that store; it has the table they use."""
    from clients import open_database

    if queue.driver != "redis":
        open_database(dsn).close()
    schema = "app_" + dsn.rpartition("schema=")[2]
    return lambda texts: texts[queue.driver].format(schema=schema)


def work(queue: Queue, handler: Any, name: str = "a", **options: Any) -> None:
    """One job, here."""
    assert Worker(queue, processes=0, tries=1).handle(name, handler, **options).run_next()


# ---- push ----------------------------------------------------------------------------------------


def test_capacity(queue: Queue) -> None:
    """Rule B4: at capacity a push is refused and nothing is stored; dead jobs count; 0 lifts it."""
    queue.capacity("mail", 3)
    assert queue.stats("mail").capacity == 3
    for _ in range(2):
        queue.push("a", queue="mail")
    queue.push("a", queue="mail", delay=60)
    with pytest.raises(QueueFull, match="mail") as caught:
        queue.push("a", queue="mail")
    assert (caught.value.queue, caught.value.capacity) == ("mail", 3)
    assert caught.value.error_code == "queue_full" and caught.value.is_retryable()
    results = queue.push_many([("a", None, {"queue": "mail"}), ("a", None, {"queue": "other"})])
    assert isinstance(results[0], QueueFull) and isinstance(results[1], str)
    job = queue.reserve("mail")
    assert job
    job.fail("no")
    with pytest.raises(QueueFull):
        queue.push("a", queue="mail")
    assert queue.flush(all=True) == 1

    def fits() -> bool:
        try:
            return bool(queue.push("a", queue="mail"))
        except QueueFull:  # PostgreSQL may believe a slow count for a second
            return False

    wait_for(fits, "room")
    queue.capacity("mail", 0)
    assert queue.push("a", queue="mail") and queue.stats("mail").capacity == 0


def test_capacity_of_a_connection_sets_it_where_none_is(dsn: str) -> None:
    """Rule B4."""
    option = "&capacity=2" if "?" in dsn else "?capacity=2"
    queue = Queue(dsn + option)
    queue.push("a")
    assert queue.stats("default").capacity == 2
    queue.capacity("default", 5)
    Queue(dsn + option).push("a")
    assert queue.stats("default").capacity == 5


def test_capacity_holds_against_many(dsn: str) -> None:
    """Rule B4: exact, but for the pushes in flight on PostgreSQL and MariaDB."""
    queue = Queue(dsn)
    queue.capacity("default", 50)
    refused: list[Exception] = []

    def push() -> None:
        own = Queue(dsn)
        for _ in range(20):
            try:
                own.push("a")
            except QueueFull as error:
                refused.append(error)

    threads = [threading.Thread(target=push) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = queue.stats("default").ready
    slack = 5 if queue.driver in ("postgresql", "mysql") else 0
    assert 50 <= stored <= 50 + slack and len(refused) == 120 - stored


@pytest.mark.parametrize(
    ("n", "error"), [(-1, ValueError), ("5", TypeError), (2**70, ValueError), (True, TypeError)]
)
def test_bad_capacities(n: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="n(: a whole number| must be)"):
        Queue("memory:").capacity("a", n)


def test_unique_policies(queue: Queue) -> None:
    """Rule B6: keep, error, replace."""
    first = queue.push("a", 1, unique="k", delay=60)
    assert queue.push("a", 2, unique="k") == first
    with pytest.raises(DuplicateJob) as caught:
        queue.push("a", 2, unique="k", on_duplicate="error")
    assert caught.value.id == first
    before = queue.find(first)
    assert before is not None and before.payload == 1
    assert queue.push("a", 3, unique="k", on_duplicate="replace", delay=30, max_wait=3600) == first
    info = queue.find(first)
    assert info is not None and info.payload == 3
    assert info.available_at and before.available_at and info.available_at < before.available_at


def test_debounced_jobs_wait_no_longer_than_max_wait(queue: Queue) -> None:
    """Rule B6."""
    id = queue.push("a", 1, unique="k", delay=60, on_duplicate="replace", max_wait=90)
    assert queue.push("a", 2, unique="k", delay=3600, on_duplicate="replace", max_wait=90) == id
    info = queue.find(id)
    assert info is not None and info.available_at is not None and info.payload == 2
    assert info.available_at <= info.enqueued_at + timedelta(seconds=91)


def test_a_key_until_started(program: Program) -> None:
    """Rule B6: a job of that scope that runs does not stand in the way of the next one."""
    first = program.queue.push("a", 1, unique="k", unique_scope="until_started")
    assert program.queue.push("a", 1, unique="k", unique_scope="until_started") == first
    ended = program.run(
        """
        @on("a")
        def a(job, payload):
            if payload == 1:
                note(queue.push("a", 2, unique="k", unique_scope="until_started"))
            else:
                note(job.id)
        """
    )
    second, ran = ended.ledger()
    assert second == ran != first, ended.err


def test_idempotent_pushes(queue: Queue) -> None:
    """Rule B5: a second one returns the id, also when the job has ended; others are duplicates."""
    for _ in range(2):
        assert queue.push("a", 1, id="order-7", idempotent=True, idempotent_for=60) == "order-7"
    assert queue.stats("default").ready == 1
    with pytest.raises(DuplicateJob):
        queue.push("a", 1, id="order-7")
    work(queue, lambda job, payload: None)
    assert queue.push("a", 1, id="order-7", idempotent=True) == "order-7"
    assert queue.stats("default").ready == 0


def test_guards(queue: Queue) -> None:
    """Rule B7: not true: GuardRefused, and nothing is stored."""
    text = ABOVE_FIVE[queue.driver]
    with pytest.raises(GuardRefused) as caught:
        queue.push("a", guard=[text, [5]])
    assert caught.value.error_code == "guard_refused"
    assert queue.stats("default").ready == 0
    assert queue.push("a", guard=(text, (6,))) and queue.push("a", guard=[text, [2**40]])
    results = queue.push_many([("a", None, {"guard": [text, [n]]}) for n in (1, 9)])
    assert isinstance(results[0], GuardRefused) and isinstance(results[1], str)


@pytest.mark.parametrize(
    ("guard", "error", "word"),
    [
        ([], TypeError, "guard: a statement is a text"),
        (7, TypeError, "guard: a statement is a text"),
        (["SELECT 1", "ab"], TypeError, "guard: a statement's parameters"),
        (["SELECT ?", [{}]], TypeError, "guard: parameter 1: .* dict given"),
        (
            ["SELECT ?, ?", [1, 2**63]],
            ValueError,
            "guard: parameter 2: an integer beyond 64 bits",
        ),
        (["SELECT ?", ["\ud800"]], ValueError, "guard: parameter 1: a lone surrogate"),
        ([b"SELECT 1"], TypeError, "guard: a statement's text"),
    ],
)
def test_bad_guards(guard: Any, error: type[Exception], word: str, folder: Path) -> None:
    queue = Queue(f"sqlite:{folder}/bad.db")
    with pytest.raises(error, match=word):
        queue.push("a", guard=guard)
    assert queue.queues() == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_wait": 5}, "max_wait"),
        ({"unique": "k", "max_wait": 5}, "max_wait"),
        ({"on_duplicate": "replace"}, "on_duplicate"),
        ({"unique": "k", "on_duplicate": "nonsense"}, "on_duplicate"),
        ({"unique_scope": "until_done"}, "unique_scope"),
        ({"idempotent": True}, "idempotent"),
        ({"id": "a", "idempotent_for": 5}, "idempotent_for"),
    ],
)
def test_options_that_mean_nothing_alone(folder: Path, options: dict[str, Any], word: str) -> None:
    queue = Queue(f"sqlite:{folder}/bad.db")
    with pytest.raises(ValueError, match=word):
        queue.push("a", **options)
    assert queue.queues() == []


# ---- results -------------------------------------------------------------------------------------


def test_results_and_progress(program: Program) -> None:
    """Rule N7: what a tracked job returned can be waited for and read by its id."""
    ids = {
        name: program.queue.push(name, track=True) for name in ("value", "nothing", "odd", "big")
    }
    ids["untracked"] = program.queue.push("value")
    dead = program.queue.push("raises", track=True)
    process = program.start(
        """
        @on("value")
        def value(job, payload):
            job.progress(50, "half")
            return {"text": "é", "bytes": b"\\xff", "list": [1, 2.5, None], "big": 2**64 - 1}
        @on("nothing")
        async def nothing(job, payload): job.progress(100.0)
        @on("odd")
        def odd(job, payload): return {"user": [1, object()]}
        @on("big")
        def big(job, payload): return b"x" * (2 << 20)
        @on("raises")
        def raises(job, payload):
            job.progress(10)
            raise ValueError("no")
        """
    )
    queue = program.queue
    wanted = {"text": "é", "bytes": b"\xff", "list": [1, 2.5, None], "big": 2**64 - 1}
    assert queue.wait(ids["value"], 30) == wanted
    assert queue.wait(ids["nothing"], 30) is None
    with pytest.raises(PayloadError, match="result.user.1: a value of type object") as caught:
        queue.wait(ids["odd"], 30)
    assert caught.value.path == "result"
    with pytest.raises(PayloadError, match="result"):
        queue.wait(ids["big"], 30)
    with pytest.raises(JobDead) as died:
        queue.wait(dead, 30)
    assert (died.value.id, died.value.reason) == (dead, "attempts_exhausted")
    assert died.value.info is not None and died.value.info.last_error
    assert died.value.info.progress == {"percent": 10.0, "note": None}
    ended = program.end(process)
    assert "the result of odd" in ended.err and ended.code == 0
    with pytest.raises(NotFound) as lost:
        queue.wait(ids["untracked"], 0)
    assert lost.value.ids == [ids["untracked"]]
    info = queue.find(ids["value"])
    assert info is not None and info.state is State.DONE and info.result == wanted
    assert info.progress == {"percent": 50.0, "note": "half"} and info.result_error is None
    assert info.kept_until and info.kept_until > datetime.now(timezone.utc) + timedelta(minutes=50)
    bad = queue.find(ids["odd"])
    assert bad is not None and bad.state is State.DONE and bad.result is None
    assert bad.result_error and "result.user.1" in bad.result_error


def test_waiting_ends_in_time(queue: Queue) -> None:
    """Rule N7."""
    id = queue.push("a", track=True)
    for timeout in (0, 0.05, timedelta(milliseconds=50)):
        start = time.monotonic()
        with pytest.raises(WaitTimeout) as caught:
            queue.wait(id, timeout)
        assert time.monotonic() - start < 20
        assert caught.value.id == id and isinstance(caught.value, TimeoutError)
    assert queue.cancel(id)
    with pytest.raises(JobDead) as died:
        queue.wait(id, 5)
    assert died.value.reason == "cancelled"
    for bad, error in ((-1, ValueError), ("5", TypeError), (None, TypeError)):
        with pytest.raises(error, match="timeout"):
            queue.wait(id, bad)  # type: ignore[arg-type]


def test_ctrl_c_ends_a_wait_whatever_it_hits(queue: Queue) -> None:
    """Rule N7: also a signal that does not wake the system call, as one just before it does not."""
    queue.push("a", track=True, id="never")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def hit() -> None:
        time.sleep(0.3)  # until wait() sleeps; when it does not yet, the test says less
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # not to the thread that waits

    thread = threading.Thread(target=hit)
    begin = time.monotonic()
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            queue.wait("never", 40)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 20


def test_others_use_the_queue_while_one_waits(queue: Queue) -> None:
    """Rule N7: the one that is waited for is done by another thread through the same object."""
    id = queue.push("a", track=True)
    found: list[Any] = []
    waiter = threading.Thread(target=lambda: found.append(queue.wait(id, 30)))
    waiter.start()
    start = time.monotonic()
    queue.push("b", queue="other")
    job = queue.reserve()
    assert job is not None and time.monotonic() - start < 20
    job.progress(30, "started")
    info = queue.find(id)
    assert info is not None and info.progress == {"percent": 30.0, "note": "started"}
    job.done({"n": 1})
    waiter.join()
    assert found == [{"n": 1}]


def test_a_memory_store_is_waited_for_by_looking() -> None:
    queue = Queue("memory:")
    id = queue.push("a", track=True)
    with pytest.raises(WaitTimeout, match="after 0.05 s"):
        queue.wait(id, 0.05)
    found: list[Any] = []
    waiter = threading.Thread(target=lambda: found.append(queue.wait(id, 30)))
    waiter.start()
    job = queue.reserve()
    assert job is not None
    job.done("x")
    waiter.join()
    assert found == ["x"]


@pytest.mark.asyncio
async def test_await(queue: Queue) -> None:
    """The loop goes on, many may wait at once, and the executor of the loop stays free."""
    ids = [await queue.apush("a", n, track=True) for n in range(12)]
    waits = [asyncio.create_task(queue.await_(id, 30)) for id in ids]
    gone = asyncio.create_task(queue.await_(ids[0], 30))
    await asyncio.sleep(0.05)
    gone.cancel()
    for _ in ids:
        job = await queue.areserve()
        assert job is not None
        await asyncio.to_thread(job.done, job.payload * 2)
    assert await asyncio.gather(*waits) == [n * 2 for n in range(12)]
    with pytest.raises(asyncio.CancelledError):
        await gone
    with pytest.raises(NotFound):
        await queue.await_("nobody", 1)
    waiting = await queue.apush("b", track=True)
    with pytest.raises(WaitTimeout, match="had not ended after 0.1 s"):  # as asked
        await queue.await_(waiting, 0.1)


def test_results_of_jobs_that_are_kept_by_the_worker(queue: Queue) -> None:
    """Rule D1: keep_done alone keeps the result, too; without either nothing is encoded."""
    first, second = queue.push("a"), queue.push("a")
    work(queue, lambda job, payload: [1, "x"], keep_done=60)
    work(queue, lambda job, payload: object())
    info = queue.find(first)
    assert info is not None and info.result == [1, "x"] and queue.find(second) is None


def test_what_release_and_middleware_make_of_results(queue: Queue) -> None:
    """What the outermost middleware returns is the result; a decision has none."""
    id = queue.push("a", track=True)
    worker = Worker(queue, processes=0).middleware(lambda job, payload, go: {"in": go()})
    worker.handle("a", lambda job, payload: 5)

    def deletes(job: Job, payload: Any) -> int:
        job.delete()
        return 5

    worker.handle("b", deletes)
    assert worker.run_next() and queue.wait(id, 0) == {"in": 5}
    id = queue.push("b", track=True)
    assert worker.run_next() and queue.wait(id, 0) is None


def test_a_result_that_cannot_be_is_told_to_who_gives_it(queue: Queue) -> None:
    """After reserve(): done() refuses it and the job can still be ended."""
    id = queue.push("a", track=True)
    job = queue.reserve()
    assert job is not None
    with pytest.raises(PayloadError, match="result.x: a naive datetime"):
        job.done({"x": datetime.now()})
    job.done([True])
    assert queue.wait(id, 0) == [True]


@pytest.mark.parametrize("percent", [-1, 101, float("nan"), "5", None, True])
def test_bad_progress(percent: Any) -> None:
    queue = Queue("memory:")
    queue.push("a")
    job = queue.reserve()
    assert job is not None
    with pytest.raises((ValueError, TypeError), match="percent|100"):
        job.progress(percent)
    job.done()


@pytest.mark.parametrize("note", [7, b"x", ["x"]])
def test_bad_note(note: Any) -> None:
    queue = Queue("memory:")
    queue.push("n", track=True)
    job = queue.reserve()
    assert job is not None
    with pytest.raises(TypeError, match="note must be a string"):
        job.progress(5, note)


def test_progress_of_running_jobs_is_seen(program: Program) -> None:
    """Rule N7: plain and async handlers, while they run."""
    queue = program.queue
    ids = [queue.push(name, track=True) for name in ("plain", "side")]
    process = program.start(
        """
        def wait(): return os.path.exists("go")
        @on("plain")
        def plain(job, payload):
            job.progress(25, "plain")
            while not wait(): time.sleep(0.02)
        @on("side", async_concurrency=5)
        async def side(job, payload):
            job.progress(75, "side")
            while not wait(): await asyncio.sleep(0.02)
        """,
        processes=2,
    )

    def seen(id: str) -> Any:
        info = queue.find(id)
        return info is not None and info.progress

    assert wait_for(lambda: seen(ids[0]), "progress") == {"percent": 25.0, "note": "plain"}
    assert wait_for(lambda: seen(ids[1]), "progress") == {"percent": 75.0, "note": "side"}
    (program.folder / "go").touch()
    assert program.end(process).code == 0
    assert [queue.wait(id, 0) for id in ids] == [None, None]


# ---- effects -------------------------------------------------------------------------------------


def test_effects(program: Program, app: Callable[[dict[str, str]], str]) -> None:
    """Rule O1: a statement runs in the store under the job's lease; plain and async handlers."""
    queue = program.queue
    for name in ("plain", "side"):
        queue.push(name, track=True, id=name)
    write, read = app(WRITE), app(READ)
    ended = program.run(
        f"""
        write, read = {write!r}, {read!r}
        @on("plain")
        def plain(job, payload):
            job.effect([write, [7]])
            return job.fingerprint()
        @on("side", async_concurrency=5)
        async def side(job, payload):
            job.effect((write, (30,)))
            await asyncio.sleep(0)
            return job.effect(read)
        """
    )
    assert ended.code == 0, ended.err
    assert (
        queue.wait("side", 0) in (37, 30)
        and queue.wait("plain", 0) == hashlib.sha256(b"plain\x001\x00" + b"\xc0").hexdigest()
    )
    queue.push("look", track=True, id="look")
    work(queue, lambda job, payload: job.effect([read]), "look")
    assert queue.wait("look", 0) == 37


@pytest.mark.parametrize("kind", ["plain", "side"])
def test_threads_push_while_a_handler_has_effects(
    program: Program, app: Callable[[dict[str, str]], str], kind: str
) -> None:
    """Rule O1: a Queue is every thread's, also the one that effects and the job's end go over."""
    queue = program.queue
    for n in range(30):
        queue.push(kind, track=True, id=f"job-{n}")
    ended = program.run(
        f"""
        write = {app(WRITE)!r}
        going, begun, threads, count, faults = threading.Event(), threading.Event(), [], [0], []
        def push():
            try:
                while going.is_set():
                    queue.push("x", queue="others")
                    count[0] += 1
                    begun.set()
            except Exception as error:
                faults.append(error)
                begun.set()
        def begin(job):
            going.clear()
            for thread in threads:
                thread.join()
            queue.close()  # the effect opens it, and the job's end closes it below the thread
            job.effect([write, [1]])
            begun.clear()
            going.set()
            threads[:] = [threading.Thread(target=push, daemon=True)]
            threads[0].start()
            assert begun.wait(20)
        def end():
            assert not faults, faults
            return count[0]
        @on("plain", timeout=60)
        def plain(job, payload):
            begin(job)
            for n in range(9):
                job.effect([write, [1]])
            return end()
        @on("side", async_concurrency=1, timeout=60)
        async def side(job, payload):
            begin(job)
            for n in range(9):
                job.effect([write, [1]])
                await asyncio.sleep(0)
            return end()
        """,
        queues="default",
    )
    assert ended.code == 0, ended.err
    pushed = max(queue.wait(f"job-{n}", 0) for n in range(30))
    assert queue.stats("others").ready >= pushed > 0
    queue.push("look", track=True, id="look")
    work(queue, lambda job, payload: job.effect(app(READ)), "look")
    assert queue.wait("look", 0) == 300


def test_effects_of_a_stale_token_are_refused(
    dsn: str, queue: Queue, app: Callable[[dict[str, str]], str]
) -> None:
    """Rules O1, C3: the lease is over: nothing is done."""
    queue.push("a")
    job = queue.reserve(lease=1)
    assert job is not None
    assert job.effect([app(WRITE), [1]]) == 1

    def taken() -> Job | None:
        return Queue(dsn).reserve(lease=60)

    other = wait_for(taken, "the lease to end", 60)
    with pytest.raises(LeaseLost):
        job.effect([app(WRITE), [100]])
    with pytest.raises(LeaseLost):
        job.progress(50)
    assert other.effect(app(READ)) == 1
    other.done()


def test_bad_effects(queue: Queue) -> None:
    queue.push("a")
    job = queue.reserve()
    assert job is not None
    with pytest.raises(TypeError, match="effect: parameter 2"):
        job.effect(["SELECT 1", [1, []]])
    with pytest.raises((QueueError, ValueError)):
        job.effect("nonsense")
    job.done()
    with pytest.raises(RuntimeError, match="ended"):
        job.effect("SELECT 1")


def test_fingerprints(queue: Queue) -> None:
    """Rule O2: of name, version and payload, whatever the id."""
    for _ in range(2):
        queue.push("a", {"n": 1}, version=2)
    prints = []
    while job := queue.reserve():
        prints.append(job.fingerprint())
        job.done()
    body = _core.encode({"n": 1})
    assert prints == [hashlib.sha256(b"a\x002\x00" + body).hexdigest()] * 2


# ---- dead jobs, statistics, checks ---------------------------------------------------------------


def test_dead_jobs_are_kept_for_a_time(queue: Queue) -> None:
    """Rule F4: dead_retention is stamped by the worker that buries the job."""

    def fails(job: Job, payload: Any) -> None:
        raise ValueError

    id = queue.push("a")
    worker = Worker(queue, processes=0, tries=1, dead_retention=3600).handle("a", fails)
    assert worker.run_next()
    info = queue.find(id)
    assert info is not None and info.state is State.DEAD and info.kept_until is not None
    assert timedelta(minutes=59) < info.kept_until - datetime.now(timezone.utc) < timedelta(hours=2)
    assert queue.retry(id) == 1
    work(queue, fails, dead_retention=0.05)

    def over() -> bool:
        info = queue.find(id)  # None: collected already
        return info is None or (info.kept_until or info.enqueued_at) < datetime.now(timezone.utc)

    wait_for(over, "the end of its retention")
    with pytest.raises(NotFound) as caught:
        queue.retry(id)
    assert caught.value.ids == [id] and queue.stats("default").ready == 0


def test_minutes(queue: Queue) -> None:
    """Rule N1: what happened in each minute, alike on every store."""

    def odd(job: Job, payload: Any) -> None:
        if payload % 2:
            raise ValueError

    queue.push_many([("a", n, {"queue": "mail"}) for n in range(6)])
    worker = Worker(queue, processes=0, tries=1, output="quiet").handle("a", odd)
    assert worker.run("mail", stop_when_empty=True) == 0
    stats = queue.stats("mail")
    sums = {
        key: sum(minute[key] for minute in stats.per_minute)
        for key in ("pushed", "done", "failed", "retried", "crashed", "released", "timed_out")
    }
    assert sums == dict(pushed=6, done=3, failed=3, retried=0, crashed=0, released=0, timed_out=0)
    assert all(isinstance(minute["at"], datetime) for minute in stats.per_minute)
    runs = [run for minute in stats.per_minute for run in minute["runs"]]
    assert sum(run["count"] for run in runs) == 6 and all(run["up_to"] > 0 for run in runs)
    plain = stats.as_dict()
    assert plain["capacity"] == 0 and plain["per_minute"][0]["at"].endswith(":00Z")
    assert queue.stats("mail", minutes=0).per_minute == []
    assert queue.all_stats()["mail"].per_minute == []
    assert queue.all_stats(minutes=5)["mail"].per_minute == stats.per_minute
    with pytest.raises(ValueError, match="minutes"):
        queue.stats("mail", minutes=1441)


def test_the_audit_finds_nothing_wrong(queue: Queue, dsn: str) -> None:
    """Rule N5: every job by its id, while others push."""
    queue.push_many([("a", n) for n in range(50)])
    stop = threading.Event()

    def traffic() -> None:
        own = Queue(dsn)
        while not stop.is_set():
            own.push("a")
            job = own.reserve()
            if job is not None:
                job.done()

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        found = [one for one in queue.doctor(audit=True) if one["check"] == "audit"]
    finally:
        stop.set()
        thread.join()
    assert found and [one for one in found if one["grade"] == "problem"] == []
    assert "audit" not in {one["check"] for one in queue.doctor()}


# ---- tasks ---------------------------------------------------------------------------------------


def test_tasks_have_results_and_policies(queue: Queue) -> None:
    @task("sum", track=True, unique="key", on_duplicate="replace", max_wait=60)
    def total(key: str, numbers: list[int]) -> int:
        return sum(numbers)

    id = total.push(queue, key="a", numbers=[1])
    assert total.using(priority=3).push(queue, key="a", numbers=[1, 2]) == id
    assert Worker(queue, processes=0, tasks=[total]).run_next()
    assert queue.wait(id, 0) == 3
