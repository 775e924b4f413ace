# SPDX-License-Identifier: MIT
# Inside of a handler; its job must be done when it has returned.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

import psycopg

address = own_database()
queue, amount, account = Queue(), 5, 1
worker = Worker(queue, processes=0, tries=1, output="quiet")


def handler(job, payload):
    # SAMPLE
    pass


worker.handle("sample", handler)
queue.push("sample", {"id": 1})
run_all(worker, queue)
rows = psycopg.connect(address).execute(
    "SELECT balance, (SELECT count(*) FROM payments) FROM accounts"
)
assert rows.fetchone() == (95, 1)
