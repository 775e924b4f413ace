# SPDX-License-Identifier: MIT
"""Background jobs over SQLite, Redis, PostgreSQL and MariaDB, with a native worker.

    from jobqueue import Queue, Worker, Job, task

    @task("invoice.send", queue="mail", tries=5, timeout=60)
    def send_invoice(job: Job, invoice: int) -> None: ...

    send_invoice.push(Queue("sqlite:queue.db"), invoice=7)
"""
from . import _client_libraries  # before all that needs the module
from . import console
from ._core import Job, version as __version__
from .errors import (
    DuplicateJob,
    GuardRefused,
    JobDead,
    JobStop,
    JobTimeout,
    LeaseLost,
    NotFound,
    NotRetryable,
    OutcomeUnknown,
    PayloadError,
    QueueError,
    QueueFull,
    RecordedError,
    RetryAfter,
    StoreError,
    WaitTimeout,
)
from .queue import Queue
from .records import Event, JobInfo, State, Stats
from .tasks import Task, set_default, task
from .worker import Worker

__all__ = [
    "DuplicateJob",
    "Event",
    "GuardRefused",
    "Job",
    "JobDead",
    "JobInfo",
    "JobStop",
    "JobTimeout",
    "LeaseLost",
    "NotFound",
    "NotRetryable",
    "OutcomeUnknown",
    "PayloadError",
    "Queue",
    "QueueError",
    "QueueFull",
    "RecordedError",
    "RetryAfter",
    "State",
    "Stats",
    "StoreError",
    "Task",
    "WaitTimeout",
    "Worker",
    "__version__",
    "console",
    "set_default",
    "task",
]

# They are known by where people import them from, in records of errors, too.
for _name in __all__:
    if getattr(globals()[_name], "__module__", "").startswith("jobqueue."):
        globals()[_name].__module__ = "jobqueue"
del _name
