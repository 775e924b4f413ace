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


@dataclass(frozen=True, slots=True)
class Stats:
    """The counts of one queue; oldest_ready_age is in seconds, None when nothing is ready."""

    queue: str
    ready: int
    delayed: int
    reserved: int
    dead: int
    backlog: int
    oldest_ready_age: float | None
    paused: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The same names and values, ready for json.dumps."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Event:
    """What a listener gets."""

    name: str
    job: Job | None = None
    queue: str | None = None
    connection: str = "default"
    data: dict[str, Any] = field(default_factory=dict)
