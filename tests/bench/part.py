# SPDX-License-Identifier: MIT
"""Python's half of part.php: part.py NAME DSN ARGUMENT...; prints its figures as JSON."""
from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Iterator
from time import monotonic_ns
from typing import Any

from jobqueue import Event, Job, Queue, Worker

QUEUE = "bench"


def payload(i: int) -> dict[str, Any]:
    return {"id": i, "email": f"user{i}@example.com", "n": 3.14}


def jobs(n: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for i in range(n):
        yield "noop", payload(i), {"queue": QUEUE}


def push(dsn: str, n: str) -> dict[str, float]:
    """One by one, each confirmed."""
    queue = Queue(dsn)
    queue.push("noop", payload(0), queue=QUEUE)
    start = monotonic_ns()
    for i in range(int(n)):
        queue.push("noop", payload(i), queue=QUEUE)
    return {"rate": int(n) / (monotonic_ns() - start) * 1e9}


def push_many(dsn: str, n: str) -> dict[str, float]:
    queue = Queue(dsn)
    queue.push("noop", payload(0), queue=QUEUE)
    start = monotonic_ns()
    queue.push_many(jobs(int(n)), lambda ids: None)
    return {"rate": int(n) / (monotonic_ns() - start) * 1e9}


def drain(dsn: str, processes: str, most: str, notes: str) -> dict[str, int]:
    """Each child notes when its first and its last handler started; run.php adds them up."""
    first = last = count = 0

    def noop(job: Job, given: Any) -> None:
        nonlocal first, last, count
        last = monotonic_ns()
        first = first or last
        count += 1

    def note(event: Event) -> None:
        if count:
            with open(notes, "a", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                print(first, last, count, file=file)

    worker = Worker(Queue(dsn), processes=int(processes), output="quiet")
    worker.handle("noop", noop)
    worker.on("child.stopping", note)
    return {"code": worker.run([QUEUE], max_jobs=int(most), stop_when_empty=True)}


print(
    json.dumps({"push": push, "push_many": push_many, "drain": drain}[sys.argv[1]](*sys.argv[2:]))
)
