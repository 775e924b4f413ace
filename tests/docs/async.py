# SPDX-License-Identifier: MIT
# Async tasks of the application.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

queue = Queue()
# SAMPLE
queue.push("page.fetch", {"url": "a"})
run_all(Worker(queue, tasks=[fetch], processes=0, tries=1, output="quiet"), queue)
