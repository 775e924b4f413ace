# SPDX-License-Identifier: MIT
"""Guards and effects that are wrong in themselves (rules B7, O1): the caller's mistake, in the server's
words; nothing is stored, and the Queue goes on."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stores import KINDS, fresh

from jobqueue import Job, Queue, StoreError, Worker

# what is wrong -> what the server says of it
MISTAKES: dict[str, dict[str, str]] = {
    "sqlite": {
        "SELECT nowhere": "no such column: nowhere",
        "SELECT 1 FROM nowhere": "no such table: nowhere",
        "SELECT (": "incomplete input",
    },
    "postgres": {
        "SELECT nowhere": 'column "nowhere" does not exist',
        "SELECT 1 FROM nothing": 'relation "nothing" does not exist',
        "SELECT (": "syntax error",
        "SELECT 1/0": "division by zero",
        "SELECT 'x'::int": "invalid input syntax",
    },
    "mariadb": {
        "SELECT nowhere": "Unknown column 'nowhere'",
        "SELECT 1 FROM nothing": "nothing' doesn't exist",
        "SELECT (": "error in your SQL syntax",
        "SELECT (SELECT 1 UNION SELECT 2)": "more than 1 row",
    },
    "redis": {
        "return nil + 1": "arithmetic on a nil value",
        "return redis.call('NOSUCH')": "Unknown Redis command",
        "retur n": "expected near",
        "return redis.error_reply('ERR of mine')": "ERR of mine",
    },
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Queue]]:
    for dsn in fresh(request.param, folder):
        yield request.param, Queue(dsn)


def test_a_mistake_in_a_guard_is_the_callers(store: tuple[str, Queue]) -> None:
    kind, queue = store
    for text, said in MISTAKES[kind].items():
        with pytest.raises(ValueError, match="the guard is refused") as caught:
            queue.push("never", guard=[text, []])
        assert said in str(caught.value)
        assert not isinstance(caught.value, StoreError)
    assert queue.stats("default").ready == 0
    queue.push("goes.on")
    assert queue.stats("default").ready == 1


def test_a_mistake_in_an_effect_is_the_handlers(store: tuple[str, Queue]) -> None:
    kind, queue = store
    seen: list[BaseException] = []
    worker = Worker(queue, processes=0, tries=1)

    def handler(job: Job, text: Any) -> int:
        try:
            job.effect([text, []])
        except ValueError as error:
            seen.append(error)
        return 1

    worker.handle("effect", handler)
    for text, said in MISTAKES[kind].items():
        id = queue.push("effect", text, track=True)
        assert worker.run_next()
        assert "the effect is refused" in str(seen[-1]) and said in str(seen[-1])
        assert queue.wait(id, timeout=30) == 1
    assert len(seen) == len(MISTAKES[kind])


def test_values_that_the_server_cannot_take_at_once(folder: Path) -> None:
    """MariaDB ends the connection of who sends more than max_allowed_packet: it is not sent."""
    for dsn in fresh("mariadb", folder):
        queue = Queue(dsn)
        queue.push("first")
        for size in ((16 << 20) - 1, 40 << 20):
            with pytest.raises(ValueError, match="max_allowed_packet") as caught:
                queue.push("never", guard=["SELECT LENGTH(?)", ["x" * size]])
            assert str(caught.value).startswith("mysql: the guard has ")
        assert queue.push("fits", guard=["SELECT LENGTH(?)", ["x" * (8 << 20)]])
        assert queue.stats("default").ready == 2
        assert queue.counters()["store_failures"] == 0


def test_a_mistake_in_one_of_many(store: tuple[str, Queue]) -> None:
    """Rule B3: the others are stored, and each error is about its own."""
    kind, queue = store
    (first, said), (second, also_said) = list(MISTAKES[kind].items())[:2]
    good = "return 1" if kind == "redis" else "SELECT 1"
    results = queue.push_many(
        [
            ("a", 1),
            ("a", 2, {"guard": [first, []]}),
            ("a", 3, {"guard": [good, []]}),
            ("a", 4, {"guard": [second, []], "queue": "other"}),
            ("a", 5, {"queue": "other"}),
        ]
    )
    assert [isinstance(one, str) for one in results] == [True, False, True, False, True]
    assert said in str(results[1]) and also_said in str(results[3])
    assert queue.stats("default").ready == 2 and queue.stats("other").ready == 1
