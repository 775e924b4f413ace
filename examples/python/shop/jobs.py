# SPDX-License-Identifier: MIT
"""The application's tasks, and its worker: python -m jobqueue work --app=shop.jobs:worker"""
from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jobqueue import Job, NotRetryable, Queue, RetryAfter, Worker, task


class NoSuchCustomer(NotRetryable):
    """Trying again would not find one either."""


@task("invoice.send", queue="mail", tries=5, timeout=30, backoff=[10, 60, 300], unique="invoice")
def send_invoice(job: Job, invoice: int, due: datetime, by: str = "mail") -> None:
    if by == "pigeon":
        raise NoSuchCustomer("nobody takes invoices by pigeon")
    print(f"invoice {invoice}, due {due:%Y-%m-%d}, by {by} (attempt {job.attempt})")


# async def: runs on the child's event loop, and is cancelled at its time limit
@task("rates.fetch", timeout=10)
async def fetch_rates(job: Job, currencies: list[str]) -> None:
    if job.attempt == 1:
        raise RetryAfter(0.2, "the bank asks for patience")
    rates = await asyncio.gather(*(rate(currency) for currency in currencies))
    print("rates:", ", ".join(f"{c} {r:.2f}" for c, r in zip(currencies, rates)))


async def rate(currency: str) -> float:
    await asyncio.sleep(0.01)
    return len(currency) / 2


# a plain handler, as in PHP: jobs of either language's producers
def make_thumbnail(job: Job, payload: Any) -> None:
    print(f"thumbnail of {payload['file']}, {payload['width']} pixels wide")


def counted(job: Job, payload: Any, call_next: Callable[[], Any]) -> Any:
    try:
        return call_next()
    finally:
        print(f"{job.name} has run")


worker = Worker(Queue(), tasks=[send_invoice, fetch_rates], tries=3, timeout=60)
worker.handle("thumbnail.make", make_thumbnail)
worker.middleware(counted)
