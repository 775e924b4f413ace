# SPDX-License-Identifier: MIT
"""Queue: the core's object with what is plain Python: listeners, bulk pushes, asyncio."""
from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Union

from . import _core
from ._core import Job
from .errors import QueueError
from .faults import report
from .records import Event, JobInfo, State, Stats

Seconds = Union[int, float, timedelta]
Moment = Union[int, float, timedelta, datetime, str]
Backoff = Union[int, float, str, list[Any], tuple[Any, ...]]
Message = Union[tuple[str], tuple[str, Any], tuple[str, Any, dict[str, Any]]]
Listener = Callable[[Event], Any]


class Queue(_core.Queue):
    """A store of jobs: Queue("sqlite:queue.db"), without a DSN $JOBQUEUE_DSN.

    Connects when it is first used. Methods may be called from any thread; each has a twin for
    asyncio whose name begins with "a" (await queue.apush(...)), which does not block the loop.
    """

    _listeners: list[Listener]

    def __enter__(self) -> Queue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    # ---- listeners ---------------------------------------------------------------------------

    def on(self, event: str, listener: Listener) -> Queue:
        """Calls listener(Event) for each job this object has pushed; the event is "job.pushed"."""
        if event != "job.pushed":
            raise ValueError(f'unknown event "{event}"; a Queue has job.pushed')
        if not callable(listener):
            raise TypeError("on(): the listener must be callable")
        if not hasattr(self, "_listeners"):
            self._listeners = []
            self._on_pushed(self._tell)
        self._listeners.append(listener)
        return self

    def _tell(self, id: str, name: str) -> None:
        event = Event("job.pushed", connection=self.connection, data={"id": id, "name": name})
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception as error:
                report("a listener of job.pushed", error)

    # ---- many --------------------------------------------------------------------------------

    def push_many(
        self,
        jobs: Iterable[Message],
        on_chunk: Callable[[list[str | QueueError]], Any] | None = None,
    ) -> list[str | QueueError]:
        """Pushes any number of jobs in chunks, each judged singly.

        A job is (name, payload) or (name, payload, {option: value}). Returns an id or the
        exception for each, in their order; with on_chunk each chunk's list goes there instead and
        the answer is empty, so that memory stays constant.
        """
        results: list[str | QueueError] = []
        chunk: list[Message] = []
        take = results.extend if on_chunk is None else on_chunk

        def send() -> None:
            sent, chunk[:] = list(chunk), []
            take(self._push_chunk(sent))

        try:
            for job in jobs:
                chunk.append(job)
                if len(chunk) >= _core.PUSH_CHUNK:
                    send()
        finally:  # what the iterable gave before it failed is pushed all the same
            if chunk:
                send()
        return results

    # ---- asyncio -----------------------------------------------------------------------------

    async def apush(
        self,
        name: str,
        payload: Any = None,
        *,
        queue: str | None = None,
        delay: Seconds | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        id: str | None = None,
        version: int | None = None,
        unique: str | None = None,
        tries: int | None = None,
        timeout: Seconds | None = None,
        backoff: Backoff | None = None,
        retry_until: Moment | None = None,
        expires: Moment | None = None,
        on_expire: str | None = None,
        context: dict[str, str] | None = None,
    ) -> str:
        """push() for asyncio."""
        given = {
            "queue": queue,
            "delay": delay,
            "at": at,
            "priority": priority,
            "id": id,
            "version": version,
            "unique": unique,
            "tries": tries,
            "timeout": timeout,
            "backoff": backoff,
            "retry_until": retry_until,
            "expires": expires,
            "on_expire": on_expire,
            "context": context,
        }
        options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        return await asyncio.to_thread(self.push, name, payload, **options)

    async def apush_many(
        self,
        jobs: Iterable[Message],
        on_chunk: Callable[[list[str | QueueError]], Any] | None = None,
    ) -> list[str | QueueError]:
        """push_many() for asyncio; the iterable and on_chunk run in a thread."""
        return await asyncio.to_thread(self.push_many, jobs, on_chunk)

    async def areserve(self, queues: str | Iterable[str] = (), lease: Seconds = 30) -> Job | None:
        """reserve() for asyncio."""
        return await asyncio.to_thread(self.reserve, queues, lease)

    async def astats(self, queue: str) -> Stats:
        """stats() for asyncio."""
        return await asyncio.to_thread(self.stats, queue)

    async def aall_stats(self) -> dict[str, Stats]:
        """all_stats() for asyncio."""
        return await asyncio.to_thread(self.all_stats)

    async def aqueues(self) -> list[str]:
        """queues() for asyncio."""
        return await asyncio.to_thread(self.queues)

    async def afind(self, id: str) -> JobInfo | None:
        """find() for asyncio."""
        return await asyncio.to_thread(self.find, id)

    async def ajobs(
        self, queue: str, state: State | str, limit: int = 50, after: str | None = None
    ) -> list[JobInfo]:
        """jobs() for asyncio."""
        return await asyncio.to_thread(self.jobs, queue, state, limit, after)

    async def adead(
        self,
        queue: str | None = None,
        name: str | None = None,
        reason: str | None = None,
        older_than: Seconds | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> list[JobInfo]:
        """dead() for asyncio."""
        return await asyncio.to_thread(self.dead, queue, name, reason, older_than, limit, after)

    async def aretry(self, ids: str | Iterable[str] = (), **filter: Any) -> int:
        """retry() for asyncio."""
        return await asyncio.to_thread(self.retry, ids, **filter)

    async def aforget(self, ids: str | Iterable[str] = (), **filter: Any) -> int:
        """forget() for asyncio."""
        return await asyncio.to_thread(self.forget, ids, **filter)

    async def aflush(self, ids: str | Iterable[str] = (), **filter: Any) -> int:
        """flush() for asyncio."""
        return await asyncio.to_thread(self.flush, ids, **filter)

    async def aprune(self, dry_run: bool = False, older_than: Seconds | None = None) -> int:
        """prune() for asyncio."""
        return await asyncio.to_thread(self.prune, dry_run, older_than)

    async def apause(self, queue: str | None = None, ttl: Seconds = 0) -> None:
        """pause() for asyncio."""
        await asyncio.to_thread(self.pause, queue, ttl)

    async def aresume(self, queue: str | None = None) -> None:
        """resume() for asyncio."""
        await asyncio.to_thread(self.resume, queue)

    async def arestart_workers(self) -> None:
        """restart_workers() for asyncio."""
        await asyncio.to_thread(self.restart_workers)

    async def acancel(self, id: str, hard: bool = False) -> bool:
        """cancel() for asyncio."""
        return await asyncio.to_thread(self.cancel, id, hard)

    async def aclear(self, queue: str) -> int:
        """clear() for asyncio."""
        return await asyncio.to_thread(self.clear, queue)

    async def aworkers(self) -> list[dict[str, Any]]:
        """workers() for asyncio."""
        return await asyncio.to_thread(self.workers)

    async def adoctor(self) -> list[dict[str, str | None]]:
        """doctor() for asyncio."""
        return await asyncio.to_thread(self.doctor)

    async def amigrate(self) -> None:
        """migrate() for asyncio."""
        await asyncio.to_thread(self.migrate)

    async def aping(self) -> float:
        """ping() for asyncio."""
        return await asyncio.to_thread(self.ping)

    async def aclose(self) -> None:
        """close() for asyncio."""
        await asyncio.to_thread(self.close)
