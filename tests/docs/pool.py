# SPDX-License-Identifier: MIT
# An application that starts its worker; jobs wait for it.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

import atexit


def make_thumbnail(job, payload):
    print("thumbnail of", payload["file"])


@task("invoice.send")
def send_invoice(job: Job, invoice: int) -> None:
    print("invoice", invoice)


def look():
    if queue.stats("default").backlog or list(queue.dead()):
        print("not so: all jobs are done")
        os._exit(1)


handlers = {"log.trim": lambda job, payload: print("trimmed")}
queue = Queue()
send_invoice.push(queue, invoice=6)
queue.push("thumbnail.make", {"file": "a.jpg"})
queue.push("log.trim")
atexit.register(look)
# SAMPLE
