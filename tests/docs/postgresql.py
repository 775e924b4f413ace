# SPDX-License-Identifier: MIT
# What stands in any application on PostgreSQL.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

import psycopg

address = own_database()
queue = Queue()
queue.migrate()
order, total = 8, 120
# SAMPLE
assert psycopg.connect(address).execute("SELECT count(*) FROM orders").fetchone() == (2,)
assert queue.stats("mail").ready == 1 and result == "stored"
