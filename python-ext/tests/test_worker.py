# SPDX-License-Identifier: MIT
"""Handlers, middleware, events and ends, inline in this process."""
from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import never, run_one

from jobqueue import (
    Event,
    Job,
    JobInfo,
    NotRetryable,
    Queue,
    RecordedError,
    RetryAfter,
    State,
    Task,
    Worker,
    task,
)


def outcome(info: JobInfo | None) -> str:
    assert info is not None
    return str(info.history[-1]["outcome"])


def test_a_plain_handler_gets_job_and_payload(queue: Queue) -> None:
    """Rule D1."""
    seen: list[Any] = []
    assert (
        run_one(
            queue, lambda job, payload: seen.append((type(job), job.attempt, payload)), {"a": [1]}
        )
        is None
    )
    assert seen == [(Job, 1, {"a": [1]})]


def test_the_error_is_kept(queue: Queue) -> None:
    """Rules D2, F5: class, message, file:line, a trace with causes and without values."""

    class Odd(Exception):
        pass

    def fails(job: Job, payload: Any) -> None:
        secret = "hunter2-in-a-variable"
        try:
            raise LookupError("no row")
        except LookupError as error:
            raise Odd("caf\u00e9 \ud800\0 " + str(len(secret))) from error

    info = run_one(queue, fails)
    assert info is not None and info.state is State.DEAD and info.reason == "attempts_exhausted"
    assert info.last_error is not None
    assert str(info.last_error["class"]).endswith("Odd") and "café" in str(
        info.last_error["message"]
    )
    assert str(info.last_error["where"]).startswith(__file__ + ":")
    trace = str(info.last_error["trace"])
    assert "LookupError: no row" in trace and "in fails" in trace and "direct cause" in trace
    assert "hunter2-in-a-variable" not in trace.replace('secret = "hunter2-in-a-variable"', "")
    assert "attempt.py" not in trace


def test_passwords_stay_out_of_traces(queue: Queue) -> None:
    """Rule P2: also those in the application's source text."""

    def fails(job: Job, payload: Any) -> None:
        int("no number" if Queue("redis://user:hunter2@127.0.0.1:1/0") else "1")

    info = run_one(queue, fails)
    assert info is not None and info.last_error
    trace = str(info.last_error["trace"])
    assert "redis://user:***@127.0.0.1:1/0" in trace and "hunter2" not in str(info)


class BadText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "outcome_", "reason"),
    [
        (ValueError("x"), "failed", "attempts_exhausted"),
        (BadText(), "failed", "attempts_exhausted"),
        (KeyboardInterrupt(), "failed", "attempts_exhausted"),
        (GeneratorExit(), "failed", "attempts_exhausted"),
        (asyncio.CancelledError(), "failed", "attempts_exhausted"),
        (BaseException("base"), "failed", "attempts_exhausted"),
        (MemoryError(), "failed", "attempts_exhausted"),
        (NotRetryable("never"), "failed", "not_retryable"),
        (ZeroDivisionError("listed by its base"), "failed", "not_retryable"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_is_raised(
    queue: Queue, kind: str, error: BaseException, outcome_: str, reason: str
) -> None:
    """Rules D2, D4, E2."""

    def plain(job: Job, payload: Any) -> None:
        raise error

    async def later(job: Job, payload: Any) -> None:
        await asyncio.sleep(0)
        raise error

    info = run_one(queue, plain if kind == "plain" else later, dont_retry=[ArithmeticError])
    assert outcome(info) == outcome_ and info is not None and info.reason == reason


def test_a_recursion_error_is_a_failure(queue: Queue) -> None:
    def again(job: Job, payload: Any) -> None:
        again(job, payload)

    info = run_one(queue, again)
    assert info is not None and info.last_error and info.last_error["class"] == "RecursionError"


@pytest.mark.parametrize(("code", "status"), [(None, 0), (3, 3), ("bye", 1)])
def test_system_exit_inline(queue: Queue, code: Any, status: int) -> None:
    """Rule D4: recorded, then the process ends as the handler wanted."""
    worker = Worker(queue, processes=0, tries=1)

    def leaves(job: Job, payload: Any) -> None:
        raise SystemExit(code)

    worker.handle("a", leaves)
    id = queue.push("a")
    with pytest.raises(SystemExit) as caught:
        worker.run_next()
    assert caught.value.code == status
    info = queue.find(id)
    said = f"the handler called sys.exit({status})" + (f": {code}" if code == "bye" else "")
    assert outcome(info) == "exited" and info is not None and info.last_error
    assert info.last_error["message"] == said


def test_retry_after(queue: Queue) -> None:
    """Rule E2."""

    def later(job: Job, payload: Any) -> None:
        raise RetryAfter(100, "busy")

    worker = Worker(queue, processes=0)
    worker.handle("a", later)
    id = queue.push("a")
    assert worker.run_next() and not worker.run_next()
    info = queue.find(id)
    assert info is not None and info.state is State.DELAYED and info.available_at
    assert 90 < (info.available_at - info.enqueued_at).total_seconds() < 130
    for bad in (-1, float("nan"), "x", True):
        with pytest.raises((TypeError, ValueError)):
            RetryAfter(bad)  # type: ignore[arg-type]


def test_release_fail_delete(queue: Queue) -> None:
    """Rule D3: they take effect at the end, the first wins, a raise after them is reported."""
    said: list[str] = []

    def decides(job: Job, payload: Any) -> None:
        getattr(job, payload)(*(["why"] if payload == "fail" else []))
        try:
            job.release()
        except RuntimeError as error:
            said.append(str(error))
        raise ValueError("after the decision")

    released = run_one(queue, decides, "release")
    assert released is not None and released.state is State.READY and released.releases == 1
    queue.reserve().delete()  # type: ignore[union-attr]
    failed = run_one(queue, decides, "fail")
    assert failed is not None and failed.reason == "failed_by_handler"
    assert run_one(queue, decides, "delete") is None
    assert len(said) == 3 and all("decided already" in text for text in said)


def test_cleanups(queue: Queue) -> None:
    """Rule D1: reverse order, after any end; one that raises makes the job a failure."""
    order: list[int] = []

    def handler(job: Job, payload: Any) -> None:
        job.defer(lambda: order.append(1))
        job.defer(lambda: (order.append(2), job.defer(lambda: order.append(3))))
        assert job.defer(never_mind) is never_mind
        if payload:
            raise ValueError("handler")

    def never_mind() -> None:
        order.append(0)

    assert run_one(queue, handler) is None and order == [0, 2, 3, 1]
    assert outcome(run_one(queue, handler, True)) == "failed" and len(order) == 8

    def broken(job: Job, payload: Any) -> None:
        async def cleanup() -> None:
            raise ValueError("cleanup")

        job.defer(cleanup)

    assert outcome(run_one(queue, broken)) == "cleanup_failed"


def test_job_is_over_after_its_end(queue: Queue) -> None:
    kept: list[Job] = []
    run_one(queue, lambda job, payload: kept.append(job), {"a": 1})
    job = kept[0]
    assert job.payload == {"a": 1} and job.attempt == 1
    for method in (job.release, job.extend, job.is_cancelled, job.remaining, job.checkpoint):
        with pytest.raises(RuntimeError, match="ended"):
            method()


# ---- which handler -------------------------------------------------------------------------------


class Callable_:
    def __call__(self, job: Job, payload: Any) -> None:
        payload.append("called")


class Async:
    async def __call__(self, job: Job, payload: Any) -> None:
        await asyncio.sleep(0)
        payload.append("awaited")


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def coroutine(job: Job, payload: Any) -> None:
    await asyncio.sleep(0)
    payload.append("coroutine")


@pytest.mark.parametrize(
    ("handler", "wanted"),
    [
        (Callable_(), "called"),
        (Async(), "awaited"),
        (coroutine, "coroutine"),
        (wrapped(coroutine), "coroutine"),
        (functools.partial(coroutine), "coroutine"),
        (wrapped(Callable_()), "called") if False else (Callable_().__call__, "called"),
    ],
    ids=["object", "async object", "async def", "wrapped async def", "partial", "method"],
)
def test_callables_of_every_kind(queue: Queue, handler: Callable[..., Any], wanted: str) -> None:
    payloads: list[Any] = []

    def keep(job: Job, payload: Any, call_next: Callable[..., Any]) -> Any:
        payloads.append(payload)
        return call_next()

    worker = Worker(queue, processes=0, tries=1).handle("a", handler).middleware(keep)
    id = queue.push("a", [])
    assert worker.run_next() and queue.find(id) is None and payloads == [[wanted]]


def test_a_task_without_its_name_is_refused() -> None:
    """Others write @task alone: here the name is what travels."""
    with pytest.raises(TypeError, match="needs the job's name"):
        task(print)  # type: ignore[arg-type]


def test_a_misspelled_event_is_named(queue: Queue) -> None:
    with pytest.raises(ValueError, match='did you mean "job.processed"'):
        Worker(queue, processes=0).on("job.proccessed", never)
    with pytest.raises(ValueError, match='did you mean "job.pushed"'):
        queue.on("job.push", never)


def test_an_event_in_the_wrong_place_says_whose_it_is(queue: Queue) -> None:
    """Rule M1; the words are PHP's."""
    with pytest.raises(ValueError, match='^"job.pushed" is an event of a Queue, not of a Worker$'):
        Worker(queue, processes=0).on("job.pushed", never)
    with pytest.raises(ValueError, match='^"job.failed" is an event of a Worker, not of a Queue$'):
        queue.on("job.failed", never)
    with pytest.raises(ValueError, match='^unknown event "nope"; a Worker has worker.starting, '):
        Worker(queue, processes=0).on("nope", never)
    with pytest.raises(ValueError, match='^unknown event "nope"; a Queue has job.pushed$'):
        queue.on("nope", never)


def test_arguments_that_fit_no_call_name_the_task(queue: Queue) -> None:
    @task("y")
    def y(job: Job, a: int) -> None:
        ...

    with pytest.raises(TypeError, match="^task \"y\": missing a required argument: 'a'$"):
        y.push(queue)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="^task \"y\": got an unexpected keyword argument 'c'$"):
        y.push(queue, a=1, c=2)  # type: ignore[call-arg]


def test_a_name_that_is_registered_twice_is_quoted(queue: Queue) -> None:
    """Rule G6."""
    worker = Worker(queue, processes=0).handle("a", never)
    with pytest.raises(ValueError, match='^a handler for "a" version 1 is registered already$'):
        worker.handle("a", never)


def test_generators_are_refused(queue: Queue) -> None:
    def plain(job: Job, payload: Any) -> Any:
        yield 1

    async def later(job: Job, payload: Any) -> Any:
        yield 1

    worker = Worker(queue)
    for function in (plain, later, functools.partial(plain)):
        with pytest.raises(TypeError, match="generator"):
            worker.handle("a", function)
    with pytest.raises(TypeError, match="generator"):
        task("a")(plain)
    info = run_one(queue, lambda job, payload: plain(job, payload))
    assert info is not None and info.last_error and "generator" in str(info.last_error["message"])
    with pytest.raises(TypeError, match="callable"):
        worker.handle("a", "name")  # type: ignore[arg-type]


def test_registration(queue: Queue) -> None:
    """Rule G6."""
    worker = Worker(queue).handle("a", never)
    with pytest.raises(ValueError, match="already"):
        worker.handle("a", never)
    worker.handle("a", never, version=2)
    with pytest.raises(ValueError, match="version"):
        worker.handle("b", never, version=0)
    with pytest.raises(ValueError, match="processes"):
        worker.handle("b", never, processes=2)
    with pytest.raises(ValueError, match="maps"):
        worker.handle("b", never, maps="object")
    with pytest.raises(ValueError, match="nonsense"):
        Worker(queue, nonsense=1)
    with pytest.raises(TypeError):
        worker.register(never)  # type: ignore[arg-type]
    assert len(worker.id()) <= 64 and worker.id().count(":") == 2 and not worker.ready()


def test_unknown_names_and_versions_are_parked(queue: Queue) -> None:
    """Rule F3."""
    worker = Worker(queue, processes=0).handle("known", never)
    for name, version in (("unknown", 1), ("known", 2)):
        id = queue.push(name, version=version)
        worker.run_next()
        info = queue.find(id)
        assert info is not None and info.state is State.DELAYED and info.failures == 0


def test_a_resolver_is_asked(queue: Queue) -> None:
    """Rules F3, G6."""
    seen: list[str] = []

    @task("by.task")
    def by_task(a: int) -> None:
        seen.append(f"task {a}")

    def resolver(name: str) -> Any:
        return {"by.name": lambda job, payload: seen.append(job.name), "by.task": by_task}.get(name)

    worker = Worker(queue, processes=0).resolver(resolver)
    queue.push_many([("by.name",), ("by.task", {"a": 3}), ("unknown",)])
    while worker.run_next():
        pass
    assert seen == ["by.name", "task 3"] and queue.stats("default").delayed == 1


# ---- tasks ---------------------------------------------------------------------------------------


@task(
    "invoice.send",
    queue="mail",
    tries=5,
    timeout=30,
    backoff=[10, 60],
    priority=3,
    unique="invoice",
)
def send_invoice(
    job: Job, invoice: int, to: str = "ada", *, copy: bool = False
) -> tuple[int, str, bool]:
    """Sends it."""
    if job is not None:
        job.payload["ran"] = (invoice, to, copy)
    return invoice, to, copy


def test_a_task_is_pushed_by_its_arguments(queue: Queue) -> None:
    assert isinstance(send_invoice, Task) and send_invoice.__doc__ == "Sends it."
    assert send_invoice(None, 7) == (7, "ada", False)
    info = queue.find(send_invoice.push(queue, 7, copy=True))
    assert info is not None and (info.name, info.queue, info.priority) == (
        "invoice.send",
        "mail",
        3,
    )
    assert info.payload == {"invoice": 7, "copy": True}
    assert send_invoice.push(queue, 7) == info.id, "the unique key is NAME:VALUE, as in PHP"
    other = send_invoice.using(queue="slow", delay=60, unique="own").push(queue, invoice=8)
    assert (found := queue.find(other)) and found.queue == "slow" and found.state is State.DELAYED
    for bad in ({}, {"invoice": 1, "odd": 2}):
        with pytest.raises(TypeError):
            send_invoice.push(queue, **bad)  # type: ignore[arg-type]
    results = queue.push_many([send_invoice.message(invoice=20), send_invoice.message(21)])
    assert all(isinstance(result, str) for result in results)


def test_a_task_runs_with_its_payload(queue: Queue) -> None:
    ran: list[Any] = []

    @task("no.job")
    def no_job(a: int, b: int = 2, **rest: Any) -> None:
        ran.append((a, b, rest))

    @task("quoted")
    @wrapped
    def quoted(own: "Job", a: int = 0) -> None:
        ran.append((own.name, a))

    worker = Worker(queue, tasks=[no_job, quoted, send_invoice], processes=0)
    queue.push_many(
        [no_job.message(1), no_job.message(1, b=5, c=6), quoted.message(), ("quoted", None)]
    )
    while worker.run_next():
        pass
    assert ran == [(1, 2, {}), (1, 5, {"c": 6}), ("quoted", 0), ("quoted", 0)]


@pytest.mark.parametrize(
    ("payload", "path"),
    [
        ([1], "payload"),
        ({}, "payload.invoice"),
        ({"invoice": 1, "odd": 2}, "payload.odd"),
        ("x", "payload"),
    ],
)
def test_a_payload_that_fits_no_call_is_undecodable(queue: Queue, payload: Any, path: str) -> None:
    """Rule A7."""
    worker = Worker(queue, tasks=[send_invoice], processes=0)
    id = queue.push("invoice.send", payload)
    assert worker.run_next()
    info = queue.find(id)
    assert info is not None and info.reason == "undecodable" and info.last_error
    assert str(info.last_error["message"]).startswith(path + ":")
    assert info.last_error["class"] == "jobqueue.PayloadError"


def test_tasks_that_cannot_be(queue: Queue) -> None:
    with pytest.raises(TypeError, match="positional-only"):
        task("a")(lambda x, /: x)
    with pytest.raises(ValueError, match="unique"):
        task("a", unique="zz")(lambda x: x)
    with pytest.raises(TypeError, match="prefetch: a number"):
        Worker(queue, prefetch="5")
    assert Worker(queue, prefetch="auto")


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"nonsense": 3}, ValueError, "nonsense"),
        ({"tires": 3}, ValueError, "tries"),
        ({"tries": "3"}, TypeError, "tries: a number"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"processes": 2}, ValueError, "processes"),
        ({"queue": "a,b"}, ValueError, "queue"),
        ({"delay": -1}, ValueError, "delay"),
        ({"version": 0}, ValueError, "version"),
        ({"maps": "object"}, ValueError, "maps"),
        ({"failed": 3}, TypeError, "failed"),
        ({"async_concurrency": 5}, ValueError, "async"),
    ],
)
def test_tasks_are_judged_where_they_are_written(
    options: dict[str, Any], error: type[Exception], word: str
) -> None:
    """A wrong option of @task is an error at the decorator, not when a worker starts."""
    decorate = task("a", **options)
    with pytest.raises(error, match=word):
        decorate(lambda: None)


def test_names_and_options_of_tasks_are_judged() -> None:
    with pytest.raises(ValueError, match="name"):
        task("")(lambda: None)
    with pytest.raises(TypeError, match="delay: a number"):
        task("a")(lambda: None).using(delay="10")
    with pytest.raises(ValueError, match="dealy"):
        task("a")(lambda: None).using(dealy=10)


def test_delay_goes_to_the_default_queue(queue: Queue) -> None:
    import jobqueue

    jobqueue.set_default(queue)
    try:
        assert queue.find(send_invoice.delay(invoice=3)) is not None
        assert queue.find(asyncio.run(send_invoice.adelay(invoice=4))) is not None
    finally:
        jobqueue.set_default(None)


# ---- middleware, events --------------------------------------------------------------------------


def test_middleware_wraps_outermost_first(queue: Queue) -> None:
    """Rule D8."""
    order: list[Any] = []

    def outer(job: Job, payload: Any, call_next: Callable[..., Any]) -> Any:
        order.append("outer")
        result = call_next(job, {"n": payload["n"] + 1})
        order.append(result)
        return result

    async def inner(job: Job, payload: Any, call_next: Callable[..., Any]) -> Any:
        order.append(("inner", payload["n"]))
        return await call_next()

    def handler(job: Job, payload: Any) -> str:
        order.append(("handler", payload["n"]))
        return "result"

    worker = Worker(queue, processes=0).middleware(outer, inner).handle("a", handler)
    queue.push("a", {"n": 1})
    assert worker.run_next()
    assert order == ["outer", ("inner", 2), ("handler", 2), "result"]
    with pytest.raises(TypeError, match="async"):
        worker.middleware(outer)


def test_middleware_that_does_not_go_on_ends_the_job(queue: Queue) -> None:
    """Rule D8."""
    kept: list[Callable[..., Any]] = []
    worker = Worker(queue, processes=0, tries=1).handle("a", never)
    worker.middleware(lambda job, payload, call_next: kept.append(call_next))
    id = queue.push("a")
    assert worker.run_next() and queue.find(id) is None
    with pytest.raises(RuntimeError, match="ended"):
        kept[0]()


def test_a_plain_middleware_sees_an_async_handlers_error(queue: Queue) -> None:
    seen: list[str] = []

    def mends(job: Job, payload: Any, call_next: Callable[..., Any]) -> None:
        try:
            call_next()
        except LookupError as error:
            seen.append(str(error))

    async def fails(job: Job, payload: Any) -> None:
        raise LookupError("from a coroutine")

    worker = Worker(queue, processes=0, tries=1).handle("a", fails).middleware(mends)
    id = queue.push("a")
    assert worker.run_next() and queue.find(id) is None and seen == ["from a coroutine"]


def test_events_of_a_job(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    """Rules M1, M2."""
    heard: list[tuple[str, Any]] = []
    worker = Worker(queue, processes=0, tries=1)

    def listen(event: Event) -> None:
        heard.append((event.name, event.data))
        raise ValueError(f"listener of {event.name}")

    def veto(event: Event) -> None:
        if event.job and event.job.payload == "veto":
            raise PermissionError("not this one")

    async def later(event: Event) -> None:
        await asyncio.sleep(0)
        heard.append(("async", event.queue))

    for name in ("job.processed", "job.released", "job.exception", "child.started"):
        worker.on(name, listen)
    worker.on("job.processing", veto).on("job.processed", later)

    def handler(job: Job, payload: Any) -> None:
        if payload == "release":
            job.release(100)
        if payload == "raise":
            raise LookupError("handler")

    worker.handle("a", handler)
    for payload in ("good", "release", "raise", "veto"):
        queue.push("a", payload)
    while worker.run_next():
        pass
    names = [name for name, _ in heard]
    assert names == [
        "child.started",
        "job.processed",
        "async",
        "job.released",
        "job.exception",
        "job.exception",
    ]
    assert heard[3][1] == {"delay": 100.0}
    assert heard[4][1]["outcome"] == "failed" and isinstance(heard[4][1]["exception"], LookupError)
    assert isinstance(heard[5][1]["exception"], PermissionError)
    assert "listener of job.processed" in caplog.text
    with pytest.raises(ValueError, match="event of a Queue, not of a Worker"):
        worker.on("job.pushed", listen)


def test_the_failed_hook(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    """Rule F6: after the record is durable, with what is known; one line in the log; tried again."""
    told: list[Any] = []

    def fails(job: Job, payload: Any) -> None:
        if payload == "fail":
            job.fail("no such customer")
        raise LookupError("no row")

    async def failed(info: JobInfo, error: RecordedError | None) -> None:
        await asyncio.sleep(0)
        found = queue.find(info.id)
        assert found is not None and found.state is State.DEAD
        told.append((info.payload, info.reason, error and f"{error.class_name}: {error}"))
        if len(told) == 1:
            raise ConnectionError("the mail server is away")

    @task("by.task", tries=1, failed=failed)
    def by_task(n: int) -> None:
        raise ValueError("by\ntask")

    worker = Worker(queue, processes=0, tries=1, backoff=0, output="quiet")
    worker.handle("a", fails, failed=failed).register(by_task)
    for payload in ("raise", "fail"):
        queue.push("a", payload)
    by_task.push(queue, n=1)
    assert worker.run(stop_when_empty=True) == 0
    assert len(told) == 4 and told[0] == ("raise", "attempts_exhausted", "LookupError: no row")
    assert ("fail", "failed_by_handler", "None: no such customer") in told
    assert ({"n": 1}, "attempts_exhausted", "ValueError: by\ntask") in told
    assert told.count(("raise", "attempts_exhausted", "LookupError: no row")) == 2
    lines = [r.getMessage() for r in caplog.records if "failed permanently" in r.getMessage()]
    assert len(lines) == 3 and any(line.endswith("failed permanently: no row") for line in lines)
    assert any(line.endswith("failed permanently: by task") for line in lines)  # one line each
    assert queue.stats("default").dead == 3 and worker.statistics()["dead"] == 3
    with pytest.raises(TypeError, match="failed"):
        worker.handle("b", fails, failed="x")


def test_job_failed_and_looping(queue: Queue) -> None:
    """Rules F6, M1: what they tell; a listener of looping that returns False lets no job begin."""
    heard: list[Event] = []
    open_: list[bool] = [False]
    worker = Worker(queue, processes=0, tries=1, output="quiet")
    worker.handle("a", never).on("job.failed", heard.append)
    worker.on("looping", lambda event: open_[0])
    id = queue.push("a")
    assert not worker.run_next() and queue.stats("default").ready == 1
    open_[0] = True
    assert worker.run(stop_when_empty=True) == 0
    (event,) = heard
    assert event.job is None and event.queue == "default" and event.data["id"] == id
    assert event.data["info"].reason == event.data["reason"] == "attempts_exhausted"
    assert event.data["exception"].class_name == "AssertionError"


# ---- what a handler leaves behind ----------------------------------------------------------------


def test_context_variables_end_with_their_job(queue: Queue) -> None:
    """Rule D7."""
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
    seen: list[str] = []

    def plain(job: Job, payload: Any) -> None:
        seen.append(user.get())
        user.set("plain")

    async def later(job: Job, payload: Any) -> None:
        seen.append(user.get())
        user.set("later")

    for handler in (plain, later, plain, later):
        run_one(queue, handler)
    assert seen == ["nobody"] * 4 and user.get() == "nobody"


def test_the_folder_is_left_behind(queue: Queue, folder: Path) -> None:
    """Rule D7."""
    before = os.getcwd()
    run_one(queue, lambda job, payload: os.chdir(folder))
    assert os.getcwd() == before


def test_what_the_handler_made_is_freed_before_the_settle(queue: Queue) -> None:
    """Rule D1."""
    import weakref

    class Made:
        pass

    found: list[Any] = []
    worker = Worker(queue, processes=0, tries=1)

    def handler(job: Job, payload: Any) -> Made:
        made = Made()
        id = job.id
        found.append(weakref.ref(made, lambda _: found.append(getattr(queue.find(id), "state"))))
        if payload:
            raise ValueError(made)
        return made

    worker.handle("a", handler)
    for payload in (False, True):
        queue.push("a", payload)
        assert worker.run_next()
    assert [item for item in found if isinstance(item, str)] == ["reserved", "reserved"]


# ---- where a worker may run ----------------------------------------------------------------------


def test_a_worker_runs_in_the_main_thread_only(queue: Queue) -> None:
    """Rule G2."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            Worker(queue).run()
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(errors) == 1 and "main thread" in str(errors[0])


def test_a_worker_runs_not_in_a_loop_and_not_in_a_worker(queue: Queue) -> None:
    async def inside() -> None:
        Worker(queue).run()

    with pytest.raises(RuntimeError, match="event loop"):
        asyncio.run(inside())
    info = run_one(queue, lambda job, payload: Worker(queue).run_next())
    assert info is not None and info.last_error and "running" in str(info.last_error["message"])
    assert run_one(queue, lambda job, payload: None) is None


def test_ctrl_c_during_run_next(queue: Queue) -> None:
    """Rule H1: the job ends, then the caller's own loop does."""
    worker = Worker(queue, processes=0)
    done: list[str] = []

    def interrupted(job: Job, payload: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert job.is_stopping()
        done.append("signal")

    def stops(job: Job, payload: Any) -> None:
        worker.stop()
        done.append("stop")

    worker.handle("interrupted", interrupted).handle("stops", stops)
    queue.push_many([("interrupted",), ("stops",)])
    with pytest.raises(KeyboardInterrupt):
        worker.run_next()
    assert worker.run_next() and not worker.run_next() and done == ["signal", "stop"]
    assert queue.stats("default").backlog == 0 and queue.dead() == []


def test_inline_output_goes_to_a_callable(queue: Queue) -> None:
    """Rule G4."""
    lines: list[str] = []
    queue.push("a")
    worker = Worker(queue, processes=0, output=lines.append).handle("a", lambda job, payload: None)
    assert worker.run(stop_when_empty=True) == 0
    assert (
        lines[0].startswith(f"Worker {worker.id()} watching default") and "Processed: a" in lines[1]
    )
    assert lines[-1] == "Ran 1 job"
    with pytest.raises(TypeError, match="output"):
        Worker(queue, output=3)
    with pytest.raises(ValueError, match="output"):
        Worker(queue, output="nonsense")


def test_run_options_go_over_the_constructors(queue: Queue) -> None:
    queue.push("a", queue="low")
    queue.push("a", queue="high")
    worker = Worker(queue, processes=3, output="quiet").handle("a", lambda job, payload: None)
    assert worker.run("high", processes=0, stop_when_empty=True) == 0
    assert queue.stats("low").ready == 1 and queue.stats("high").ready == 0
    assert worker.statistics()["done"] == 1
    with pytest.raises(ValueError, match="tires"):
        worker.run(tires=3)


def test_nothing_is_leaked_by_jobs(queue: Queue) -> None:
    """Memory of a long-lived child stays where it is: whatever jobs do and however they end."""
    import gc
    import logging
    import sys

    logging.disable()
    worker = Worker(Queue("memory:"), processes=0, tries=1, output="quiet")
    worker.register(send_invoice).middleware(lambda job, payload, call_next: call_next())

    def fails(job: Job, payload: Any) -> None:
        raise ValueError(payload)

    async def later(job: Job, payload: Any) -> None:
        job.defer(lambda: None)
        await asyncio.sleep(0)
        raise LookupError(payload)

    worker.handle("fails", fails).handle("later", later)

    def rounds(n: int) -> int:
        for i in range(n):
            send_invoice.push(worker.queue, invoice=i)
            worker.queue.push_many([("fails", {"a": [1, b"x"]}), ("later",), ("invoice.send", [])])
            for name in ("mail", "default", "default", "default"):
                assert worker.run_next(name)
            worker.queue.flush(all=True)
        gc.collect()
        return sys.getallocatedblocks()

    try:
        rounds(150)
        before = rounds(150)
        assert rounds(400) - before < 800  # one object a job would be 1600
    finally:
        logging.disable(logging.NOTSET)
