# SPDX-License-Identifier: MIT
"""The Python half of ./dev demo: demo.py push DSN | work DSN LEDGER. The ledger gets a line for each job that ended well."""
import asyncio
import os
import sys

from jobqueue import Job, Queue, Worker, task

command, dsn = sys.argv[1:3]
queue = Queue(dsn)


@task("greeting")
async def greet(job: Job, to: str) -> None:
    """Waits a while, so that both processes get something to do."""
    if to == "a flaky service" and job.attempt == 1:
        raise RuntimeError("the service did not answer")
    await asyncio.sleep(0.03)
    print(f"  Python process {os.getpid()} says hello to {to} (attempt {job.attempt})")
    ledger = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"{job.id}\n".encode())
    os.close(ledger)


if command == "push":
    print(" ", greet.push(queue, to="Guido"))
    for id in queue.push_many(greet.message(to=name) for name in ("Margaret", "Frances", "Hedy")):
        print(" ", id, "in one step")
else:
    sys.exit(Worker(queue, tasks=[greet], processes=2).run(stop_when_empty_for=1.5))
