# SPDX-License-Identifier: MIT
# What stands in any application: its queue and its database.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

own_tables()
queue = Queue()
doc, n, order, total, amount, account = {"title": "Lamps"}, 8, 8, 120, 5, 1
# SAMPLE
