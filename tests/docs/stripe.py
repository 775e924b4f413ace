# SPDX-License-Identifier: MIT
# A service with idempotency keys.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *


class stripe:
    class PaymentIntent:
        keys = []

        @staticmethod
        def create(amount, currency, idempotency_key):
            stripe.PaymentIntent.keys.append(idempotency_key)


# SAMPLE
queue = Queue()
worker = Worker(queue, processes=0, tries=1, output="quiet")
worker.handle("charge", charge)
id = queue.push("charge", {"amount": 5})
run_all(worker, queue)
assert stripe.PaymentIntent.keys == [id]
