# SPDX-License-Identifier: MIT
# Jobs wait, and there is no worker.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *


def deliver(payload):
    pass


queue = Queue()
queue.push("mail.send", {"to": 7}, queue="mail")
queue.push("mail.send", {"to": 8}, queue="mail")
# SAMPLE
assert queue.stats("mail").backlog == 0 and not list(queue.dead())
