# SPDX-License-Identifier: MIT
"""Queue: the core's object with what is plain Python: listeners, bulk pushes, asyncio."""
from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Union

from . import _core
from ._core import Job
from .errors import WaitTimeout
from .faults import report
from .records import Event, JobInfo, State, Stats

Seconds = Union[int, float, timedelta]
Moment = Union[int, float, timedelta, datetime, str]
Backoff = Union[int, float, str, list[Any], tuple[Any, ...]]
Message = Union[tuple[str], tuple[str, Any], tuple[str, Any, dict[str, Any]]]
Pushed = Union[str, Exception]  # an id, or what push() raises for that job
Listener = Callable[[Event], Any]
Value = Union[None, bool, int, float, str, bytes]
# "SQL", or [SQL (on Redis: a script), parameters]
Statement = Union[str, tuple[str], tuple[str, Sequence[Value]], list[Any]]

_A_JOB = "a tuple (name, payload, {option: value}) is expected"
_SPARES = 4  # handles kept for the next wait()
_WAITERS = 32  # threads that await_() uses; more waits at once take turns
_LOOK = 0.01  # between two looks at a memory store, which nobody can be woken by
_waiters: ThreadPoolExecutor | None = None


def _pool_of_waiters() -> ThreadPoolExecutor:
    global _waiters
    if _waiters is None:
        _waiters = ThreadPoolExecutor(_WAITERS, "jobqueue-wait")
    return _waiters


def _forget_waiters() -> None:
    global _waiters
    _waiters = None


os.register_at_fork(after_in_child=_forget_waiters)  # its threads are the parent's


def _deadline(timeout: Seconds) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError("timeout: a number of seconds is expected")
    if not seconds >= 0:
        raise ValueError("timeout must be a number of seconds, 0 or more")
    return time.monotonic() + seconds


class Queue(_core.Queue):
    """A store of jobs: Queue("sqlite:queue.db"), without a DSN $JOBQUEUE_DSN.

    Connects when it is first used. Methods may be called from any thread; each has a twin for
    asyncio whose name begins with "a" (await queue.apush(...)), which does not block the loop.
    """

    _listeners: list[Listener]
    _spares: list[_core.Queue] | None = None

    def close(self) -> None:
        """Closes the connection; the next call opens it again."""
        super().close()
        spares, self._spares = self._spares or [], None
        for spare in spares:
            spare.close()

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
            if event in _core.events():
                raise ValueError(f'"{event}" is an event of a Worker, not of a Queue')
            near = _core.event_nearest(event) == "job.pushed"
            hint = ', did you mean "job.pushed"?' if near else "; a Queue has job.pushed"
            raise ValueError(f'unknown event "{event}"{hint}')
        if not callable(listener):
            raise TypeError("on(): the listener must be callable")
        if not hasattr(self, "_listeners"):
            self._listeners = []
            self._on_pushed(self._tell)
        self._listeners.append(listener)
        return self

    def _tell(self, id: str, name: str, queue: str) -> None:
        event = Event(
            "job.pushed", queue=queue, connection=self.connection, data={"id": id, "name": name}
        )
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception as error:
                report("a listener of job.pushed", error)

    # ---- waiting -----------------------------------------------------------------------------

    def wait(self, id: str, timeout: Seconds) -> Any:
        """Waits until that job is done and returns its result; push it with track=True.

        JobDead: it died, or was cancelled. WaitTimeout: it has not ended within so many seconds
        (0: look once). NotFound: there is no such job, or nothing of it is kept. PayloadError: its
        result could not be kept. Other threads may use this Queue meanwhile.
        """
        end = _deadline(timeout)
        return self._wait_until(id, end, end - time.monotonic(), None)

    def _wait_until(self, id: str, end: float, span: float, stop: threading.Event | None) -> Any:
        """In steps: somebody may ask it to stop, and a signal that comes between two instructions of
        the core is only seen when it returns."""
        with self._borrow() as handle:
            while True:
                left = max(0.0, end - time.monotonic())
                step = _LOOK if handle is self else min(left, 1.0)
                try:
                    return handle._wait(id, 0 if handle is self else step)
                except WaitTimeout as error:
                    if left <= step or (stop is not None and stop.is_set()):
                        # this step was only the last of several
                        error.args = (f'job "{id}" had not ended after {max(0.0, span):.3g} s',)
                        raise
                if handle is self:
                    time.sleep(step)

    @contextmanager
    def _borrow(self) -> Iterator[_core.Queue]:
        """A handle of its own for a call that takes long: one is one thread's at a time."""
        if self.driver == "memory":  # a store of this object's
            yield self
            return
        spares = self._spares or []
        handle = spares.pop() if spares else self._twin()
        try:
            yield handle
        finally:
            if self._spares is None:
                self._spares = []
            if len(self._spares) < _SPARES:
                self._spares.append(handle)

    async def await_(self, id: str, timeout: Seconds) -> Any:
        """wait() for asyncio; in a thread of its own, not of the loop's executor."""
        stop = threading.Event()
        end = _deadline(timeout)
        span = end - time.monotonic()  # a thread may come to it later
        try:
            return await asyncio.get_running_loop().run_in_executor(
                _pool_of_waiters(), self._wait_until, id, end, span, stop
            )
        finally:
            stop.set()

    # ---- many --------------------------------------------------------------------------------

    def push_many(
        self,
        jobs: Iterable[Message],
        on_chunk: Callable[[list[Pushed]], Any] | None = None,
    ) -> list[Pushed]:
        """Pushes any number of jobs in chunks, each judged singly.

        A job is (name, payload) or (name, payload, {option: value}). Returns an id or the
        exception that push() raises for each, in their order; with on_chunk each chunk's list goes
        there instead and the answer is empty, so that memory stays constant. What is no tuple is
        a TypeError at once.
        """
        results: list[Pushed] = []
        chunk: list[Message] = []
        take = results.extend if on_chunk is None else on_chunk

        def send() -> None:
            sent, chunk[:] = list(chunk), []
            take(self._push_chunk(sent))

        try:
            for job in jobs:
                if not isinstance(job, tuple) or not job:
                    _core.refuse_type("a job to push", job, _A_JOB)
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
        track: bool | None = None,
        unique_scope: str | None = None,
        on_duplicate: str | None = None,
        max_wait: Seconds | None = None,
        guard: Statement | None = None,
        idempotent: bool | None = None,
        idempotent_for: Seconds | None = None,
    ) -> str:
        """push() for asyncio."""
        given = {**locals()}
        options: dict[str, Any] = {
            key: value
            for key, value in given.items()
            if key not in ("self", "name", "payload") and value is not None
        }
        return await asyncio.to_thread(self.push, name, payload, **options)

    async def apush_statement(
        self, name: str, payload: Any = None, **options: Any
    ) -> tuple[str, tuple[Value, ...]]:
        """push_statement() for asyncio."""
        return await asyncio.to_thread(self.push_statement, name, payload, **options)

    async def apush_many(
        self,
        jobs: Iterable[Message],
        on_chunk: Callable[[list[Pushed]], Any] | None = None,
    ) -> list[Pushed]:
        """push_many() for asyncio; the iterable and on_chunk run in a thread."""
        return await asyncio.to_thread(self.push_many, jobs, on_chunk)

    async def areserve(self, queues: str | Iterable[str] = (), lease: Seconds = 30) -> Job | None:
        """reserve() for asyncio."""
        return await asyncio.to_thread(self.reserve, queues, lease)

    async def astats(self, queue: str, minutes: int = 60) -> Stats:
        """stats() for asyncio."""
        return await asyncio.to_thread(self.stats, queue, minutes)

    async def aall_stats(self, minutes: int = 0) -> dict[str, Stats]:
        """all_stats() for asyncio."""
        return await asyncio.to_thread(self.all_stats, minutes)

    async def acapacity(self, queue: str, n: int) -> None:
        """capacity() for asyncio."""
        await asyncio.to_thread(self.capacity, queue, n)

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

    async def aretry(self, ids: str | Iterable[str] | None = None, **filter: Any) -> int:
        """retry() for asyncio."""
        return await asyncio.to_thread(self.retry, ids, **filter)

    async def aforget(self, ids: str | Iterable[str] | None = None, **filter: Any) -> int:
        """forget() for asyncio."""
        return await asyncio.to_thread(self.forget, ids, **filter)

    async def aflush(self, ids: str | Iterable[str] | None = None, **filter: Any) -> int:
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

    async def adoctor(self, audit: bool = False) -> list[dict[str, str | None]]:
        """doctor() for asyncio."""
        return await asyncio.to_thread(self.doctor, audit)

    async def amigrate(self) -> None:
        """migrate() for asyncio."""
        await asyncio.to_thread(self.migrate)

    async def aping(self) -> float:
        """ping() for asyncio."""
        return await asyncio.to_thread(self.ping)

    async def aclose(self) -> None:
        """close() for asyncio."""
        await asyncio.to_thread(self.close)
