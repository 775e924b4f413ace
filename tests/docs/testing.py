# SPDX-License-Identifier: MIT
# A test that a runner would call.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *


@task("invoice.send", queue="mail")
def send_invoice(job: Job, invoice: int) -> None:
    print("invoice", invoice)


# SAMPLE
test_invoice_is_sent()
