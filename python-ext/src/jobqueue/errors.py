# SPDX-License-Identifier: MIT
"""Exceptions. Mistakes in a call are ValueError and TypeError; everything else is a QueueError."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records import JobInfo


class QueueError(Exception):
    """What the job queue reports; error_code is a stable word for programs."""

    error_code: str = "queue"
    _retryable: bool = False

    def is_retryable(self) -> bool:
        """May the same call succeed later?"""
        return self._retryable


class StoreError(QueueError):
    """The store could not be reached, failed, or did not answer in time."""


class OutcomeUnknown(QueueError):
    """The answer was lost: the job with this id may have been stored or not."""

    id: str = ""


class DuplicateJob(QueueError):
    """A job with that id, or with on_duplicate="error" that unique key, exists already: this one."""

    id: str = ""


class QueueFull(QueueError):
    """The queue holds as many jobs as its capacity allows; nothing was stored."""

    queue: str = ""
    capacity: int = 0


class GuardRefused(QueueError):
    """The guard of the push was not true; nothing was stored."""


class JobDead(QueueError):
    """Raised by Queue.wait(): the job will have no result."""

    id: str = ""
    reason: str | None = None
    info: JobInfo | None = None


class WaitTimeout(QueueError, TimeoutError):
    """Raised by Queue.wait(): the job has not ended within the time given."""

    id: str = ""


class LeaseLost(QueueError):
    """The job is somebody else's by now: its result is refused and nothing was changed."""


class PayloadError(QueueError):
    """A payload that cannot be queued or read; path says where in it."""

    path: str = ""
    misfit: bool = False  # it fits no call of its task's function


class NotFound(QueueError):
    """Some of the ids that were given are not there; the others are done."""

    ids: list[str] = []


class JobTimeout(QueueError):
    """Raised in a handler that is over its time limit; its process is killed when it stays."""


class JobStop(QueueError):
    """Raised in a handler when the worker stops and cannot wait for it any longer."""


class RecordedError(QueueError):
    """What is kept of a dead job's last error, as its failed hook gets it; never raised.

    class_name is None when nothing was raised (a crash, a time limit that had to be enforced).
    """

    error_code = "recorded"
    class_name: str | None = None
    place: str | None = None
    recorded_trace: str | None = None


class RetryAfter(QueueError):
    """For handlers: a failure whose next attempt comes after so many seconds."""

    def __init__(self, seconds: float, message: str = "") -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TypeError("RetryAfter: seconds must be a number")
        if not 0 <= seconds < 1e9:
            raise ValueError("RetryAfter: seconds must be 0 or more")
        super().__init__(message or f"to be tried again after {seconds:g} s")
        self.seconds = seconds

    def __reduce__(self) -> tuple[type[RetryAfter], tuple[float, str]]:
        return type(self), (self.seconds, str(self))


class NotRetryable(Exception):
    """For the application's own exceptions: raised from a handler, the job is dead at once."""
