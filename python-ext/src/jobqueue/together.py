# SPDX-License-Identifier: MIT
"""A child with handlers that have async_concurrency: several of their jobs at once, each a task of
the child's event loop.

    poll -> JOB of such a handler -> a task of its own        (Companion)
         -> JOB of another one, HOOK: comes only when no task is left, runs outside of the loop
         -> WAIT -> until the worker's descriptor or the end of a task says that there is more

Nothing is thrown into code from a signal here: it would hit whoever runs just then. SIGURG comes
through the loop, and the task of the job that is over its time is cancelled.
"""
from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .attempt import Attempt, Call, Hook, _is_awaitable, firing
from .faults import flush_output, leave_fork, report
from .records import Event

if TYPE_CHECKING:
    from .worker import Worker

_LOOK = 1.0  # seconds after which the worker is asked unrung; it may have lost its parent
_LOOK_DEAF = 0.02  # a handler has closed the descriptor


class Companion(Attempt):
    """One job in hand, beside others."""

    instead: BaseException | None = None  # why its task was cancelled
    task: asyncio.Task[None] | None = None

    async def run_beside(self) -> None:
        if self._check() and self._find():
            await self._handle()
            self.job._seal(self.ending)
            self._let_cancel_pass()
            listeners, event = self._end_event()
            if event is not None:
                self._heard(await self._fire(listeners, event))
            while (cleanup := self.job._next_defer()) is not None:
                done, error = await self._call(cleanup)
                if not done:
                    self._conclude_cleanup(error)
        self.over = True
        self.error = self.handler = None
        flush_output()
        self._settle()

    def look(self) -> None:
        """Is it to end?"""
        if self.over or self.task is None:
            return
        error = self.core.interrupted_job(self.job)
        if error is not None:
            self.instead = error
            self.task.cancel()

    def _let_cancel_pass(self) -> None:
        """It has been obeyed; listeners and cleanups may use timeouts and task groups."""
        if self.task is not None:
            while self.task.cancelling():
                self.task.uncancel()

    async def _handle(self) -> None:
        listeners = self.worker._listeners.get("job.processing", ())
        if listeners:
            error = await self._fire(listeners, self._event("job.processing"), True)
            if error is not None:
                self._conclude(False, error)
                return
        done, value = await self._call(self._chain, 0, self.job.payload)
        try:
            if self._conclude(done, value) and not self._take_decision():
                self._keep(value)
        finally:
            del value  # this frame is below the exception's

    async def _call(self, function: Call, *args: Any) -> tuple[bool, Any]:
        """(True, result) or (False, exception)."""
        return await call(self.worker, function, *args)

    async def _fire(
        self, listeners: Sequence[Call], event: Event, strict: bool = False
    ) -> BaseException | None:
        return await fire(self.worker, listeners, event, strict)

    def _interrupt(self) -> tuple[int, BaseException | None]:
        return self.job._interrupt, self.instead

    def _not_retried(self) -> list[str]:
        return self.core.dont_retry(self.job)

    def _retire(self, text: str) -> None:
        """Without the text: should the child die, it is about one of several."""
        self.core.retire("")

    def _settle(self) -> None:
        try:
            self.core.settle_job(self.job, self.ending, self.delay_ms)
        except Exception as error:
            report(f"settling job {self.job.id}", error)


async def call(worker: Worker, function: Call, *args: Any) -> tuple[bool, Any]:
    """Runner.call inside of the loop."""
    process = os.getpid()
    pair: tuple[bool, Any] = worker._core.call(function, args)
    try:
        if pair[0] and _is_awaitable(pair[1]):
            pair = (True, await pair[1])
    except BaseException as error:  # whatever it is, it ends this job alone
        pair = (False, error)
    try:
        if os.getpid() != process:  # forked by the application, and come back
            leave_fork(None if pair[0] else pair[1])
        return pair
    finally:
        del pair


async def fire(
    worker: Worker,
    listeners: Sequence[Call],
    event: Event,
    strict: bool = False,
    vetoes: Sequence[Call] | None = None,
) -> BaseException | None:
    """Runner.fire inside of the loop."""
    steps = firing(listeners, event, strict, vetoes)
    try:
        listener = next(steps)
        while True:
            listener = steps.send(await call(worker, listener, event))
    except StopIteration as end:
        answer: BaseException | None = end.value
        return answer


class Together:
    """The child's loop."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.core = worker._core
        self.running: set[Companion] = set()
        self._waiter: asyncio.Future[None] | None = None
        self._catcher: Any = None

    def run(self) -> None:
        while True:
            step = self._until_alone()
            if step[0] == _core.STEP_STOP:
                return
            kind = Attempt if step[0] == _core.STEP_JOB else Hook
            attempt = kind(self.worker, *step[1:])
            del step
            self.worker._run_one(attempt)
            del attempt

    def _until_alone(self) -> tuple[Any, ...]:
        """Runs the loop until there is something to do that is not for it."""
        loop = self.worker._runner._own_loop()
        self._catch(loop)
        task = loop.create_task(self._take())
        try:
            while True:
                try:
                    return loop.run_until_complete(task)
                except (SystemExit, KeyboardInterrupt) as error:  # of a task that a handler left
                    if task.done():
                        raise
                    report("a background task", error)
                    self.core.retire("")
        finally:
            if not loop.is_closed():
                loop.remove_signal_handler(signal.SIGURG)

    def _catch(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_signal_handler(signal.SIGURG, self._look)
        self._catcher = _core.interrupt_handler()

    def _look(self) -> None:
        for attempt in list(self.running):
            attempt.look()

    async def _take(self) -> tuple[Any, ...]:
        while True:
            step = self.core.poll()
            if step[0] == _core.STEP_STOP:
                return await self._end(step)
            if step[0] == _core.STEP_EVENT:
                await self._deliver(*step[1:])
            elif step[0] == _core.STEP_WAIT:
                await self._news()
            elif step[0] == _core.STEP_JOB and self._is_companion(step[2]):
                self.core.let_go()
                self._begin(Companion(self.worker, *step[1:]))
                del step  # nothing of the job outlives it
                await asyncio.sleep(0)
            else:
                return step

    async def _end(self, step: tuple[Any, ...]) -> tuple[Any, ...]:
        """No more will come; what runs may end."""
        while self.running:
            await asyncio.wait([one.task for one in self.running if one.task is not None])
        return step

    def _is_companion(self, index: int) -> bool:
        return index >= 0 and self.worker._handlers[index].together

    def _begin(self, attempt: Companion) -> None:
        loop = asyncio.get_running_loop()
        if _core.interrupt_handler() is not self._catcher:  # a handler took it (rule D7)
            self._catch(loop)
        if not self.running:
            attempt._go_back(self.worker._folder)
        attempt.task = loop.create_task(attempt.run_beside())
        self.running.add(attempt)
        attempt.task.add_done_callback(lambda task: self._ended(attempt, task))

    def _ended(self, attempt: Companion, task: asyncio.Task[None]) -> None:
        self.running.discard(attempt)
        attempt.task = None
        if not task.cancelled() and task.exception() is not None:
            report("the worker itself", task.exception())  # type: ignore[arg-type]
        self.worker._note_loaded()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _news(self) -> None:
        loop = asyncio.get_running_loop()
        fd = self.core.fd()
        self._waiter = loop.create_future()
        timer = loop.call_later(_LOOK if fd >= 0 else _LOOK_DEAF, self._wake)
        if fd >= 0:
            loop.add_reader(fd, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            timer.cancel()
            if fd >= 0:
                loop.remove_reader(fd)

    async def _deliver(self, name: str, job: Any, queue: str | None, data: dict[str, Any]) -> None:
        """An event that was decided elsewhere."""
        event = Event(name, job, queue, self.worker.queue.connection, data)
        vetoes = [self.core.veto] if name == "looping" else None
        listeners = self.worker._listeners.get(name, ())
        error = await fire(self.worker, listeners, event, vetoes=vetoes)
        if isinstance(error, SystemExit):
            self.core.retire("a listener called sys.exit()")
