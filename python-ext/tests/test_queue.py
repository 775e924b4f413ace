# SPDX-License-Identifier: MIT
"""Queue: pushing, taking, looking, mending."""
from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from conftest import run_one

from jobqueue import (
    DuplicateJob,
    Event,
    Job,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    PayloadError,
    Queue,
    QueueError,
    State,
    Stats,
    StoreError,
    Worker,
)


def test_push_confirms_and_stores_the_options(queue: Queue) -> None:
    """Rules A1, B1, B2."""
    id = queue.push(
        "invoice.send",
        {"invoice": 7},
        queue="mail",
        delay=timedelta(minutes=1),
        priority=5,
        version=2,
        unique="k",
        tries=5,
        timeout=1.5,
        backoff=[10, 60],
        expires=3600,
        context={"trace": "abc"},
    )
    info = queue.find(id)
    assert info is not None
    assert (info.id, info.name, info.queue, info.version) == (id, "invoice.send", "mail", 2)
    assert info.state is State.DELAYED and info.priority == 5 and info.attempt == 1
    assert info.payload == {"invoice": 7} and info.context == {"trace": "abc"}
    assert info.options["tries"] == 5 and info.options["timeout"] == 1.5
    assert info.available_at is not None
    assert timedelta(seconds=50) < info.available_at - info.enqueued_at < timedelta(seconds=70)
    assert queue.find("nothing-of-that-id") is None


def test_at_is_a_moment_with_a_zone(queue: Queue) -> None:
    """Rule B9."""
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    info = queue.find(queue.push("a", at=later))
    assert info and info.available_at and abs(info.available_at - later) < timedelta(seconds=1)
    past = queue.find(queue.push("a", at=datetime(1950, 1, 1, tzinfo=timezone.utc)))
    assert past and past.state is State.READY
    with pytest.raises(ValueError, match="naive"):
        queue.push("a", at=datetime.now())


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"nonsense": 1}, ValueError, "nonsense"),
        ({"queu": "a"}, ValueError, "queue"),
        ({"processes": 2}, ValueError, "processes"),
        ({"delay": -1}, ValueError, "delay"),
        ({"delay": float("nan")}, ValueError, "delay"),
        ({"priority": 10}, ValueError, "priority"),
        ({"priority": "5"}, TypeError, "priority: a number is expected, str given"),
        ({"delay": "3"}, TypeError, "delay: a number is expected, str given"),
        ({"tries": True}, TypeError, "tries: a number is expected, bool given"),
        ({"processes": "2"}, ValueError, "processes"),
        ({"queue": "a,b"}, ValueError, "queue"),
        ({"tries": object()}, TypeError, "tries"),
        ({"backoff": []}, ValueError, "backoff"),
        ({"context": {"a": 1}}, TypeError, "context"),
        ({"id": "-x"}, ValueError, "id"),
    ],
)
def test_usage_errors(
    queue: Queue, options: dict[str, Any], error: type[Exception], word: str
) -> None:
    """A wrong option is an error that names it and what is allowed, never a default."""
    with pytest.raises(error, match=word):
        queue.push("a", None, **options)
    with pytest.raises(TypeError):
        queue.push()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        queue.push("a", name="b")  # type: ignore[misc]
    assert queue.queues() == []


def test_duplicate_ids_and_unique_keys(queue: Queue) -> None:
    """Rules B5, B6."""
    assert queue.push("a", id="my-1") == "my-1"
    with pytest.raises(DuplicateJob) as caught:
        queue.push("a", id="my-1")
    assert caught.value.id == "my-1" and caught.value.error_code == "duplicate"
    first = queue.push("a", unique="k")
    assert queue.push("a", unique="k") == first


def test_push_many_judges_singly(queue: Queue) -> None:
    """Rule B3."""
    results = queue.push_many(
        [
            ("a", 1),
            ("b", {1, 2}),
            ("c",),
            ("d", None, {"queue": "mail", "context": {"t": "1"}}),
            ("e", 1, {"nonsense": 1}),
            ("a", 1, {"id": "x1"}),
            ("a", 1, {"id": "x1"}),
            (7, None),  # type: ignore[list-item]
        ]
    )
    good = [isinstance(result, str) for result in results]
    assert good == [True, False, True, True, False, True, False, False]
    assert isinstance(results[1], PayloadError) and results[1].path == "payload"
    assert type(results[4]) is ValueError and type(results[7]) is TypeError
    assert isinstance(results[6], DuplicateJob) and results[6].id == "x1"
    assert queue.stats("default").ready == 3 and queue.stats("mail").ready == 1


@pytest.mark.parametrize(
    "options",
    [
        {"nonsense": 1},
        {"tries": -1},
        {"unique": 5},
        {"track": "no"},
        {"guard": "neither SQL nor Lua"},
        {"guard": 5},
        {"context": 5},
    ],
)
def test_a_mistake_is_the_same_class_in_push_many(queue: Queue, options: dict[str, Any]) -> None:
    """Rule B3."""
    with pytest.raises(Exception) as caught:
        queue.push("a", None, **options)
    (result,) = queue.push_many([("a", None, options)])
    assert type(result) is type(caught.value) and type(result) in (ValueError, TypeError)
    assert str(result) == str(caught.value)


def test_push_many_refuses_what_is_no_job(queue: Queue) -> None:
    """Rule B3: 20,000 failed results would not be looked at."""
    wrong: list[Any] = [{"name": "a", "payload": i} for i in range(20_000)]
    given: list[Any] = [(wrong, "dict"), ([["a", 1]], "list"), ("text", "str"), ([()], "tuple")]
    for jobs, kind in given:
        with pytest.raises(TypeError) as caught:
            queue.push_many(jobs)
        text = "a job to push: a tuple (name, payload, {option: value}) is expected"
        assert str(caught.value) == f"{text}, {kind} given"
    assert queue.stats("default").ready == 0
    with pytest.raises(TypeError, match="dict given"):
        queue.push_many([("before", 1), *wrong])
    assert queue.stats("default").ready == 1


def test_push_many_from_a_generator_in_constant_memory(queue: Queue) -> None:
    """Rule B3: chunks go out while the generator runs; what came before its error is stored."""
    seen: list[int] = []

    def jobs() -> Iterator[tuple[str, int]]:
        for i in range(1200):
            yield "a", i
        seen.append(queue.stats("default").ready)
        raise LookupError("the source ended")

    chunks: list[int] = []
    with pytest.raises(LookupError):
        queue.push_many(jobs(), lambda results: chunks.append(len(results)))
    assert seen == [1000] and chunks == [500, 500, 200]
    assert queue.stats("default").ready == 1200


def test_listeners_hear_of_pushes(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    """Rules M1, M2: once per stored job; a raise changes nothing."""
    heard: list[Event] = []

    def fails(event: Event) -> None:
        raise ValueError("listener")

    queue.on("job.pushed", heard.append).on("job.pushed", fails)
    id = queue.push("a", unique="k")
    queue.push("a", unique="k")
    ids = queue.push_many([("b", 1, {"queue": "more"}), ("c", {1})])
    assert [event.queue for event in heard] == ["default", "more"]
    assert [event.data for event in heard] == [{"id": id, "name": "a"}, {"id": ids[0], "name": "b"}]
    assert "ValueError: listener" in caplog.text
    with pytest.raises(ValueError, match="job.pushed"):
        queue.on("job.done", heard.append)


def test_nothing_of_an_earlier_push(dsn: str) -> None:
    """Rule B8: options of one push are not seen in the next one's statement."""
    queue = Queue(dsn)

    def values(**options: Any) -> list[Any]:
        _, values = queue.push_statement("n", id="same", **options)
        return [value for value in values if not isinstance(value, int)]

    plain = values()
    assert values(timeout=9, context={"a": "b"}, track=True) != plain
    assert values() == plain


# ---- reserve -------------------------------------------------------------------------------------


def test_reserve_and_its_ends(queue: Queue) -> None:
    """Rules C4, D3, O3."""
    queue.push("a", {"n": 1}, context={"trace": "t"}, backoff=0)
    job = queue.reserve("default")
    assert job is not None and queue.reserve() is None
    assert (job.name, job.queue, job.payload, job.context) == (
        "a",
        "default",
        {"n": 1},
        {"trace": "t"},
    )
    assert (job.attempt, job.failures, job.releases, job.deliveries) == (1, 0, 0, 1)
    assert job.age() >= 0 and job.remaining() is None or isinstance(job.remaining(), float)
    job.extend()
    job.release()
    with pytest.raises(RuntimeError, match="decided"):
        job.done()
    again = queue.reserve()
    assert (
        again is not None and again.releases == 1 and again.attempt == 1 and again.fence > job.fence
    )
    again.retry(error=ValueError("no luck"))
    third = queue.reserve()
    assert third is not None and third.failures == 1 and third.attempt == 2
    third.fail("no such customer")
    info = queue.find(third.id)
    assert info is not None and info.state is State.DEAD and info.reason == "failed_by_handler"
    assert info.last_error and info.last_error["message"] == "no such customer"
    assert [entry["outcome"] for entry in info.history] == ["released", "failed", "failed"]
    assert info.history[1]["class"] == "ValueError" and info.history[1]["message"] == "no luck"


def test_a_stale_token_is_refused(queue: Queue, dsn: str) -> None:
    """Rule C3."""
    queue.push("a")
    job = queue.reserve(lease=1)
    assert job is not None
    other = Queue(dsn)
    end = time.monotonic() + 30
    while (taken := other.reserve()) is None:
        assert time.monotonic() < end, "waited for the lease to run out"
        time.sleep(0.05)
    with pytest.raises(LeaseLost) as caught:
        job.done()
    assert caught.value.error_code == "lease_lost"
    with pytest.raises(LeaseLost):
        job.release()
    taken.done()


def test_reserve_takes_only_what_it_is_told(queue: Queue) -> None:
    """Rule C1."""
    queue.push("low", queue="low")
    queue.push("b", queue="high")
    queue.push("a", queue="high", priority=9)
    names: list[str] = []
    while job := queue.reserve("high, low"):
        names.append(job.name)
    assert names == ["a", "b", "low"]
    assert queue.reserve(["none"]) is None
    with pytest.raises(ValueError):
        queue.reserve("a,,b")
    with pytest.raises(ValueError):
        queue.reserve(lease=0)
    with pytest.raises(TypeError):
        queue.reserve([1])  # type: ignore[list-item]


def test_an_unreadable_body_is_buried_and_the_next_job_served(queue: Queue, folder: Path) -> None:
    """Rules A7, C6."""
    import sqlite3

    bad = queue.push("bad", {"a": 1})
    good = queue.push("good")
    queue.close()
    with sqlite3.connect(folder / "queue.db") as db:
        db.execute("UPDATE jobqueue_job SET body = ? WHERE id = ?", (b"\xc1", bad))
    db.close()
    job = queue.reserve()
    assert job is not None and job.id == good
    info = queue.find(bad)
    assert info is not None and info.reason == "undecodable" and info.payload is None
    assert info.payload_error and info.last_error and "c1" in str(info.last_error["message"])


# ---- looking and mending -------------------------------------------------------------------------


def bury(queue: Queue, n: int, name: str = "a") -> list[str]:
    ids = queue.push_many([(name, i) for i in range(n)])
    for _ in range(n):
        job = queue.reserve()
        assert job is not None
        job.fail("no")
    return [str(id) for id in ids]


def test_stats(queue: Queue) -> None:
    """Rule N1."""
    queue.push("a")
    queue.push("a", delay=60)
    stats = queue.stats("default")
    assert isinstance(stats, Stats) and (stats.ready, stats.delayed, stats.backlog) == (1, 1, 2)
    assert stats.oldest_ready_age is not None and stats.oldest_ready_age >= 0
    assert queue.stats("unknown").backlog == 0 and queue.stats("unknown").oldest_ready_age is None
    assert stats.as_dict()["queue"] == "default" and queue.all_stats().keys() == {"default"}
    assert queue.counters()["pushed"] == 2


def test_lists_page_by_the_last_id(queue: Queue) -> None:
    ids = [str(id) for id in queue.push_many([("a", i) for i in range(25)])]
    seen: list[str] = []
    after = None
    while page := queue.jobs("default", State.READY, 10, after):
        seen += [info.id for info in page]
        after = seen[-1]
    assert seen == ids
    other = Queue(queue.dsn.split("?")[0])
    assert [info.id for info in other.jobs("default", "ready", 3, ids[4])] == ids[5:8]
    with pytest.raises(ValueError, match="after"):
        queue.jobs("default", State.READY, after="nothing")
    with pytest.raises(ValueError, match="limit"):
        queue.jobs("default", State.READY, limit=0)
    with pytest.raises(ValueError):
        queue.jobs("default", "odd")


def test_dead_jobs_are_mended(queue: Queue) -> None:
    """Rule F4."""
    ids = bury(queue, 4)
    bury(queue, 1, "b")
    assert len(queue.dead()) == 5 and [info.name for info in queue.dead(name="b")] == ["b"]
    assert len(queue.dead(reason="failed_by_handler", queue="default", limit=2)) == 2
    with pytest.raises(ValueError):
        queue.retry()
    with pytest.raises(ValueError):
        queue.forget(ids[:1], all=True)
    for by in (queue.retry, queue.forget, queue.flush):  # never all of them
        with pytest.raises(ValueError, match="ids: the list is empty"):
            by([], queue="default")
    assert queue.retry(ids[0], dry_run=True) == 1 and queue.stats("default").dead == 5
    assert queue.retry(ids[0]) == 1
    with pytest.raises(NotFound) as caught:
        queue.forget([ids[1], "unknown"])
    assert caught.value.ids == ["unknown"] and queue.stats("default").dead == 3
    assert queue.retry(name="a", older_than=3600) == 0
    assert queue.retry(name="a") == 2
    assert (
        queue.flush(all=True, dry_run=True) == 1
        and queue.flush(all=True) == 1
        and queue.dead() == []
    )


def test_control(queue: Queue) -> None:
    """Rules L1, L2, L3."""
    id = queue.push("a")
    queue.pause("default", ttl=60)
    assert queue.stats("default").paused and not queue.stats("other").paused
    queue.resume("default")
    queue.pause()
    assert queue.stats("other").paused
    queue.resume()
    assert not queue.stats("default").paused
    queue.pause("default", ttl=0.0001)  # short, not without an end as 0
    for _ in range(400):
        if not queue.stats("default").paused:
            break
        time.sleep(0.01)
    assert not queue.stats("default").paused
    with pytest.raises(ValueError):
        queue.pause(ttl=-1)
    before = queue._generation()
    queue.restart_workers()
    assert queue._generation() == before + 1
    waiting = queue.push("b", delay=60)
    assert queue.cancel(waiting) is True and queue.cancel("unknown") is False
    found = queue.find(waiting)
    assert found is not None and found.reason == "cancelled"
    assert queue.push_many([("c", None), ("c", None, {"delay": 5})]) and queue.clear("default") >= 2
    assert queue.stats("default").backlog == 0 and queue.stats("default").dead == 1
    assert (
        queue.prune() == 0
        and queue.prune(older_than=3600) == 0
        and queue.prune(True, older_than=0) <= 1
    )
    assert id


def test_a_cancelled_job_is_told(queue: Queue) -> None:
    """Rule L3: checkpoint raises, the throw is dead as cancelled."""
    from jobqueue import JobStop

    seen: list[Any] = []

    def handler(job: Job, payload: Any) -> None:
        queue.cancel(job.id)
        end = time.monotonic() + 30
        while not job.is_cancelled():
            assert time.monotonic() < end, "waited for is_cancelled"
            time.sleep(0.02)
        try:
            job.checkpoint()
        except JobStop as error:
            seen.append(error.error_code)
            raise

    info = run_one(queue, handler)
    assert info is not None and info.reason == "cancelled" and seen == ["cancelled"]


# ---- connections ---------------------------------------------------------------------------------


def test_constructing_connects_to_nothing() -> None:
    queue = Queue("redis://:secret@127.0.0.1:1/0", connect_timeout=0.2)
    assert "secret" not in repr(queue) and "secret" not in queue.dsn and queue.driver == "redis"
    with pytest.raises(StoreError) as caught:
        queue.push("a")
    assert "secret" not in str(caught.value) and caught.value.is_retryable()
    assert caught.value.error_code == "connect" and not isinstance(caught.value, OutcomeUnknown)


@pytest.mark.parametrize(
    ("dsn", "options", "word"),
    [
        ("nonsense://x", {}, "nonsense"),
        ("sqlite:x.db?capactiy=1", {}, "capac"),
        ("memory:", {"tries": 1}, "tries"),
        ("sqlite:\0x", {}, "NUL"),
    ],
)
def test_bad_connections(dsn: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Queue(dsn, **options)


def test_a_context_manager_closes(dsn: str) -> None:
    with Queue(dsn) as queue:
        queue.push("a")
    assert queue.stats("default").ready == 1  # opens again


def test_threads_share_a_queue(queue: Queue) -> None:
    """A handle is one thread's at a time; the others wait without the interpreter's lock."""
    errors: list[BaseException] = []

    def push() -> None:
        try:
            for i in range(50):
                queue.push("a", i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=push) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and queue.stats("default").ready == 400


def test_other_threads_run_while_the_store_is_slow() -> None:
    """The interpreter's lock is given up: a store that does not answer stops nobody else."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        queue = Queue(f"redis://127.0.0.1:{port}/0", read_timeout=0.5, connect_timeout=0.5)
        pushing = threading.Thread(target=lambda: pytest.raises(StoreError, queue.push, "a"))
        pushing.start()
        ticks = 0
        while pushing.is_alive():
            ticks += 1
            time.sleep(0.01)
    assert ticks > 10


def test_a_forked_child_may_push(queue: Queue) -> None:
    """Rule K4."""
    queue.push("parent")
    pid = os.fork()
    if pid == 0:
        try:
            queue.push("child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    queue.push("parent")
    assert queue.stats("default").ready == 3


def test_objects_are_freed(dsn: str) -> None:
    """No cycle of ours keeps a connection open."""
    import gc
    import weakref

    queue = Queue(dsn)
    queue.on("job.pushed", lambda event: None)
    queue.push("a")
    worker = Worker(queue)
    worker.handle("a", lambda job, payload: worker)
    dead = weakref.ref(worker), weakref.ref(queue)
    del queue, worker
    gc.collect()
    assert [ref() for ref in dead] == [None, None]


def test_doctor_workers_ping_migrate(queue: Queue) -> None:
    """Rule N5."""
    queue.migrate()
    assert queue.ping() >= 0
    findings = queue.doctor()
    assert {"connection", "schema"} <= {finding["check"] for finding in findings}
    assert all(finding["grade"] in ("ok", "note", "problem") for finding in findings)
    assert queue.workers() == []
    queue.push("a")
    job = queue.reserve()
    assert len(queue.workers()) == 1 and queue.workers()[0]["held"] == 1
    assert job is not None
    job.done()


def test_job_cannot_be_made_or_changed(queue: Queue) -> None:
    with pytest.raises(TypeError):
        Job()  # type: ignore[call-arg]
    queue.push("a")
    job = queue.reserve()
    assert job is not None
    with pytest.raises(AttributeError):
        job.id = "x"  # type: ignore[misc]
    with pytest.raises(RuntimeError):
        job.defer(print)
    assert job.id in repr(job)
    job.done()
    assert run_one(queue, lambda job, payload: None) is None
    assert sys.getrefcount(job) < 5
