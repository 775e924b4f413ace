# SPDX-License-Identifier: MIT
# An application that declares tasks, and pushes and runs them.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

queue = Queue()
# SAMPLE
run_all(Worker(queue, tasks=[send_invoice], processes=0, tries=1, output="quiet"), queue)
