# SPDX-License-Identifier: MIT
"""Memory of one child over many jobs (case B144): `./dev python tests/bench/leak.py [JOBS] [plain|async|together]`,
1,000,000 plain ones by default; "async" are coroutines one by one, "together" fifty at once on the child's loop.

Prints the child's private memory, what tracemalloc counts (with `JOBQUEUE_LEAK_TRACE=1`: it makes Python several times
slower) and the interpreter's blocks as the run goes on; exit 1 when one of them has grown by a byte (a block in a
thousand) or more per job after the first tenth.
"""
from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from jobqueue import Event, Job, Queue, Worker

jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
kind = sys.argv[2] if len(sys.argv) > 2 else "plain"
traced = bool(os.environ.get("JOBQUEUE_LEAK_TRACE"))
folder = Path(tempfile.mkdtemp(prefix="jobqueue-leak-"))
count = 0


def payload(i: int) -> dict[str, Any]:
    return {
        "i": i,
        "email": f"user{i}@example.com",
        "deep": [{"a": 1.5, "b": b"\xff"}],
        "long": "y" * (i % 300),
    }


def look() -> None:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    private = next(int(line.split()[1]) for line in status.splitlines() if "RssAnon" in line)
    held = tracemalloc.get_traced_memory()[0] if traced else 0
    row = (count, private * 1024, held, sys.getallocatedblocks(), len(os.listdir("/proc/self/fd")))
    with open(folder / "notes", "a", encoding="ascii") as notes:
        print(*row, file=notes)


def work(job: Job, given: dict[str, Any]) -> None:
    global count
    if count % max(1, jobs // 20) == 0:
        look()
    count += 1
    if given["i"] % 20 == 0:
        try:
            raise LookupError("inner")
        except LookupError as error:
            raise RuntimeError("one in twenty") from error
    if given["i"] % 33 == 0:
        job.release(86400)


async def work_async(job: Job, given: dict[str, Any]) -> None:
    work(job, given)


def plain_middleware(job: Job, given: Any, call_next: Any) -> Any:
    return call_next()


async def async_middleware(job: Job, given: Any, call_next: Any) -> Any:
    return await call_next()


def heard(event: Event) -> None:
    pass


def run() -> list[list[int]]:
    logging.getLogger("jobqueue").disabled = True  # a line for each death
    queue = Queue(f"sqlite://{folder}/queue.db?synchronous=normal")
    queue.push_many((("mixed", payload(i)) for i in range(jobs)), lambda chunk: None)
    worker = Worker(queue, processes=1, memory=0, output="quiet")
    worker.middleware(plain_middleware if kind == "plain" else async_middleware)
    worker.on("job.processed", heard)
    worker.on("child.started", lambda event: tracemalloc.start() if traced else None)
    options = {"async_concurrency": 50} if kind == "together" else {}
    worker.handle("mixed", work if kind == "plain" else work_async, tries=1, **options)
    start = time.monotonic()
    worker.run(stop_when_empty=True)
    print(f"{jobs} {kind} jobs, {jobs / (time.monotonic() - start):.0f} a second")
    lines = (folder / "notes").read_text().splitlines()
    return [[int(word) for word in line.split()] for line in lines]


def main() -> int:
    if kind not in ("plain", "async", "together"):
        print(f'leak.py: plain, async or together is expected, "{kind}" given', file=sys.stderr)
        return 2
    try:
        rows = run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    names = ("jobs", "private", "traced", "blocks", "fds")
    for row in [names, *rows]:
        print(f"{row[0]:>10} {row[1]:>14} {row[2]:>12} {row[3]:>10} {row[4]:>4}")
    first, last = rows[len(rows) // 10], rows[-1]
    done = max(1, last[0] - first[0])
    slopes = [(last[i] - first[i]) / done for i in (1, 2)] + [(last[3] - first[3]) / done * 1000]
    print("private memory %+.3f bytes a job, traced %+.3f, blocks %+.3f in a thousand" % (*slopes,))
    return int(max(slopes) >= 1 or last[4] != first[4])


sys.exit(main())
