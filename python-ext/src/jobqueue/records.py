# SPDX-License-Identifier: MIT
"""What the queue gives out to be looked at: plain values, copied once."""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Job

UTC = timezone.utc
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class State(StrEnum):
    """Where a job stands."""

    READY = "ready"
    DELAYED = "delayed"
    RESERVED = "reserved"
    DONE = "done"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job as it stood in the store when it was looked at."""

    id: str
    name: str
    queue: str
    version: int
    state: State
    attempt: int
    failures: int
    crashes: int
    releases: int
    deliveries: int
    losses: int
    priority: int
    payload: Any
    payload_error: str | None
    context: dict[str, str]
    options: dict[str, Any]
    enqueued_at: datetime
    available_at: datetime | None
    reserved_until: datetime | None
    reserved_by: str | None
    died_at: datetime | None
    reason: str | None
    last_error: dict[str, str | None] | None
    history: list[dict[str, Any]]
    progress: dict[str, Any] | None = None  # {"percent": 40.0, "note": "page 4"}
    result: Any = None
    result_error: str | None = None  # there was one, but it could not be kept, or be read
    kept_until: datetime | None = None


def _json_minute(minute: dict[str, Any]) -> dict[str, Any]:
    return {**minute, "at": minute["at"].strftime("%Y-%m-%dT%H:%M:%SZ")}


@dataclass(frozen=True, slots=True)
class Stats:
    """The counts of one queue; oldest_ready_age is in seconds, None when nothing is ready.

    per_minute has what happened in each of the last minutes, oldest first, those without anything
    left out: "at" (its beginning), pushed, done, failed, retried, crashed, released, timed_out, and
    "runs": how many handlers took at most "up_to" seconds (None: longer than all of these).
    """

    queue: str
    ready: int
    delayed: int
    reserved: int
    dead: int
    backlog: int
    oldest_ready_age: float | None
    paused: bool = False
    capacity: int = 0  # 0: no limit
    per_minute: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same names and values, ready for json.dumps."""
        return {**asdict(self), "per_minute": [_json_minute(one) for one in self.per_minute]}


@dataclass(frozen=True, slots=True)
class Event:
    """What a listener gets."""

    name: str
    job: Job | None = None
    queue: str | None = None
    connection: str = "default"
    data: dict[str, Any] = field(default_factory=dict)
