# SPDX-License-Identifier: MIT
"""Options of a wrong type are refused, not guessed at: the message names the option, what it takes and
what was given (G1: never silently a default)."""
from __future__ import annotations

from typing import Any

import pytest

from jobqueue import Queue, Task, Worker, task

BOOL, NUMBER, TEXT = "true or false", "a number", "a string"
LIST = "a string or a list of strings"
BACKOFF = "a number, a string or a list of numbers"
TIME = "a number, a string or a time"


@pytest.mark.parametrize(
    ("option", "value", "expected", "given"),
    [
        ("track", "no", BOOL, "str"),
        ("track", 1, BOOL, "int"),
        ("idempotent", "yes", BOOL, "str"),
        ("unique", 5, TEXT, "int"),
        ("unique", True, TEXT, "bool"),
        ("unique", ["a"], TEXT, "list"),
        ("queue", 3, TEXT, "int"),
        ("on_duplicate", 3, TEXT, "int"),
        ("id", 7, TEXT, "int"),
        ("priority", "3", NUMBER, "str"),
        ("tries", True, NUMBER, "bool"),
        ("delay", [1], NUMBER, "list"),
        ("backoff", True, BACKOFF, "bool"),
        ("at", True, TIME, "bool"),
        ("expires", [1], TIME, "list"),
    ],
)
def test_of_push(queue: Queue, option: str, value: Any, expected: str, given: str) -> None:
    text = f"{option}: {expected} is expected, {given} given"
    options: dict[str, Any] = {option: value}
    with pytest.raises(TypeError) as caught:
        queue.push("never", None, **options)
    assert str(caught.value) == text
    refused = queue.push_many([("never", None, options), ("stored", None)])
    assert str(refused[0]) == text and isinstance(refused[1], str)
    assert queue.stats("default").ready == 1
    if option not in (
        "at",
        "id",
        "idempotent",
    ):  # a task's push options are judged by the decorator
        with pytest.raises(TypeError, match=option):
            made: Task[..., Any] = task("never", **options)(lambda: None)
            made.push(queue)


@pytest.mark.parametrize(
    ("option", "value", "expected", "given"),
    [
        ("once", "no", BOOL, "str"),
        ("stop_when_empty", "false", BOOL, "str"),
        ("stop_when_empty", 0, BOOL, "int"),
        ("name", 5, TEXT, "int"),
        ("errors", 3, TEXT, "int"),
        ("processes", "0", NUMBER, "str"),
        ("prefetch", "3", NUMBER, "str"),
        ("prefetch", "many", NUMBER, "str"),
        ("dont_retry", 5, LIST, "int"),
    ],
)
def test_of_workers(queue: Queue, option: str, value: Any, expected: str, given: str) -> None:
    with pytest.raises(TypeError) as caught:
        Worker(queue, **{option: value})
    assert str(caught.value) == f"{option}: {expected} is expected, {given} given"


@pytest.mark.parametrize(
    ("option", "value", "expected", "given"),
    [
        ("migrate", "no", BOOL, "str"),
        ("read_timeout", "3", NUMBER, "str"),
        ("queue", 5, TEXT, "int"),
    ],
)
def test_of_connections(option: str, value: Any, expected: str, given: str) -> None:
    with pytest.raises(TypeError) as caught:
        Queue("sqlite:never.db", **{option: value})
    assert str(caught.value) == f"{option}: {expected} is expected, {given} given"


def test_what_they_take(queue: Queue) -> None:
    queue.push("a", None, track=False, unique="5", backoff="10,60", at="2030-01-01T00:00:00Z")
    queue.push("a", None, id="x", idempotent=True, delay=1.5, backoff=[1, 2.5], expires=60)
    Worker(queue, prefetch="auto", once=True, dont_retry=[KeyError, "shop.NoStock"])
    Worker(queue, prefetch=3, dont_retry="KeyError")
    assert queue.stats("default").delayed == 2


def test_flags_of_methods(queue: Queue) -> None:
    """retry(all="no") would have put everything back."""
    calls: list[tuple[str, Any]] = [
        ("all", lambda: queue.retry(all="no")),  # type: ignore[arg-type]
        ("all", lambda: queue.forget(all="no")),  # type: ignore[arg-type]
        ("dry_run", lambda: queue.forget(all=True, dry_run="yes")),  # type: ignore[arg-type]
        ("dry_run", lambda: queue.prune(dry_run=0)),  # type: ignore[arg-type]
        ("hard", lambda: queue.cancel("x", hard="no")),  # type: ignore[arg-type]
        ("audit", lambda: queue.doctor(audit="no")),  # type: ignore[arg-type]
    ]
    for name, call in calls:
        with pytest.raises(TypeError, match=f"{name}: True or False is expected, (str|int) given"):
            call()


WORD, WHOLE = "a string", "a whole number"
WORDS = "a string or an iterable of strings"


@pytest.mark.parametrize(
    ("call", "argument", "expected"),
    [
        (lambda q: q.find(5), "id", WORD),
        (lambda q: q.cancel(5), "id", WORD),
        (lambda q: q.wait(5, 1), "id", WORD),
        (lambda q: q.stats(5), "queue", WORD),
        (lambda q: q.pause(5), "queue", WORD),
        (lambda q: q.resume(5), "queue", WORD),
        (lambda q: q.clear(5), "queue", WORD),
        (lambda q: q.capacity(5, 1), "queue", WORD),
        (lambda q: q.jobs(5, "ready"), "queue", WORD),
        (lambda q: q.jobs("a", 5), "state", WORD),
        (lambda q: q.jobs("a", "ready", after=5), "after", WORD),
        (lambda q: q.dead(queue=5), "queue", WORD),
        (lambda q: q.dead(name=5), "name", WORD),
        (lambda q: q.dead(after=5), "after", WORD),
        (lambda q: q.retry(reason=5), "reason", WORD),
        (lambda q: q.retry(5), "ids", WORDS),
        (lambda q: q.retry([5]), "ids", WORD),
        (lambda q: q.forget(5), "ids", WORDS),
        (lambda q: q.reserve(5), "queues", WORDS),
        (lambda q: q.reserve([5]), "queues", WORD),
        (lambda q: Worker(q).run(5), "queues", WORDS),
        (lambda q: Worker(q).run_next(5), "queues", WORDS),
        (lambda q: Worker(q).handle(5, lambda job, payload: None), "name", WORD),
        (lambda q: Worker(q, tasks=5), "tasks", "an iterable of tasks"),
        (lambda q: Worker(5), "queue", "a jobqueue.Queue"),
    ],
)
def test_of_arguments(queue: Queue, call: Any, argument: str, expected: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(queue)
    assert str(caught.value) == f"{argument}: {expected} is expected, int given"


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda q: q.stats("a", minutes="x"), "minutes"),
        (lambda q: q.all_stats("x"), "minutes"),
        (lambda q: q.capacity("a", "x"), "n"),
        (lambda q: q.jobs("a", "ready", "x"), "limit"),
        (lambda q: q.dead(limit="x"), "limit"),
        (lambda q: Worker(q).handle("a", lambda job, payload: None, "x"), "version"),
    ],
)
def test_of_whole_numbers(queue: Queue, call: Any, argument: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(queue)
    assert str(caught.value) == f"{argument}: {WHOLE} is expected, str given"


def test_no_internal_name_is_shown() -> None:
    with pytest.raises(TypeError, match="^queue: a jobqueue.Queue is expected, str given$"):
        Worker("sqlite:x.db")  # type: ignore[arg-type]


def test_whole_numbers_out_of_range(queue: Queue) -> None:
    for call in (
        lambda: queue.stats("a", 10**30),
        lambda: queue.capacity("a", 10**30),
        lambda: queue.capacity("a", -(10**30)),
        lambda: queue.jobs("a", "ready", 10**30),
        lambda: Worker(queue).handle("a", lambda job, payload: None, 2**31),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()
