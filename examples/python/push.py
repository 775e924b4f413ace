# SPDX-License-Identifier: MIT
"""Pushes a few jobs into $JOBQUEUE_DSN (else sqlite:jobqueue.db)."""
from datetime import datetime, timezone

from jobqueue import Queue, QueueError
from shop.jobs import fetch_rates, send_invoice

with Queue() as queue:
    print(send_invoice.push(queue, invoice=17, due=datetime(2026, 12, 24, tzinfo=timezone.utc)))
    print(fetch_rates.using(priority=5).push(queue, ["EUR", "CHF"]))
    for result in queue.push_many(
        ("thumbnail.make", {"file": f"dog{i}.jpg", "width": 640}) for i in range(1, 4)
    ):
        print(f"refused: {result}" if isinstance(result, QueueError) else result)
