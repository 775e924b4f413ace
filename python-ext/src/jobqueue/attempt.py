# SPDX-License-Identifier: MIT
"""One job from hand-out to settle:

    find -> job.processing -> middleware, handler -> event of the end -> cleanups -> settle

Every call of the application's code goes through Runner.call; Attempt._conclude is the only judge
of how it went. A time limit is raised inside of those calls and nowhere else (src/_core/guard.c).
"""
from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import selectors
import signal
import warnings
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import Job
from .errors import JobStop, JobTimeout, NotRetryable, PayloadError, RecordedError, RetryAfter
from .faults import chain, class_name, exit_status, flush_output, log, report
from .records import Event, JobInfo

if TYPE_CHECKING:
    from .worker import Worker

Call = Callable[..., Any]
_MISSING: Any = object()
_EVENT_OF_END = {_core.ENDED_RELEASED: "job.released", _core.ENDED_DONE: "job.processed"}


async def _await(value: Awaitable[Any]) -> Any:
    return await value


def _is_awaitable(value: Any) -> bool:
    return value is not None and inspect.isawaitable(value)


async def _ready(value: Any) -> Any:
    return value


def _is_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _close_quietly(loop: asyncio.AbstractEventLoop, process: int) -> None:
    """Of a Worker that nobody needs any more, or at the program's end."""
    if process != os.getpid() or loop.is_closed() or loop.is_running():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if asyncio.get_event_loop() is loop:
                asyncio.set_event_loop(None)
        except RuntimeError:  # there is none
            pass
    try:
        loop.close()
    except (OSError, RuntimeError):  # a handler has closed its descriptors
        pass


def firing(
    listeners: Sequence[Call], event: Event, strict: bool, vetoes: Sequence[Call] | None
) -> Generator[Call, tuple[bool, Any], BaseException | None]:
    """Whom to call, in order; whoever calls (or awaits) them sends what came of it: (True, result)
    or (False, exception). A raise is reported; SystemExit, or the first one when strict, is the
    answer and ends it. `vetoes` is called when one returns False."""
    for listener in list(listeners):
        done, error = yield listener
        if done:
            for veto in (vetoes or ()) if error is False else ():
                veto()
            continue
        if strict or isinstance(error, SystemExit):
            return error if isinstance(error, BaseException) else None
        report(f"a listener of {event.name}", error)
    return None


class Runner:
    """Calls the application's code in this process; coroutines run on one loop of its own."""

    def __init__(self, core: _core.Worker) -> None:
        self._core = core
        self._loop: asyncio.AbstractEventLoop | None = None
        self._selector: selectors.EpollSelector | None = None

    def call(self, function: Call, *args: Any) -> tuple[bool, Any]:
        """(True, result) or (False, exception); a coroutine's end is what counts."""
        pair = self._core.call(function, args)
        try:
            return self.wait(pair[1]) if pair[0] and _is_awaitable(pair[1]) else pair
        finally:
            del pair  # this frame is below the exception's: it would hold it, and be held by it

    def wait(
        self, value: Awaitable[Any], context: contextvars.Context | None = None
    ) -> tuple[bool, Any]:
        """Runs it to its end. An interrupt cancels it through the loop: a raise would hit that."""
        coroutine: Coroutine[Any, Any, Any] = value if inspect.iscoroutine(value) else _await(value)
        loop = self._own_loop()
        task = loop.create_task(coroutine, context=context)
        self._core.cancel_by(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return self._core.call(loop.run_until_complete, (task,))
        finally:
            self._core.cancel_by(None)

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed() or not self._is_whole():
            self._selector = selectors.EpollSelector()
            self._loop = asyncio.SelectorEventLoop(self._selector)
            asyncio.set_event_loop(self._loop)
            weakref.finalize(self, _close_quietly, self._loop, os.getpid())
        return self._loop

    def _is_whole(self) -> bool:
        """A handler may have closed the loop's descriptor, or put another under its number."""
        if self._selector is None:
            return False
        try:
            return "[eventpoll]" in os.readlink(f"/proc/self/fd/{self._selector.fileno()}")
        except OSError:
            return False

    def close(self) -> None:
        """Ends the loop and what still runs on it."""
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            return
        asyncio.set_event_loop(None)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        try:
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=1))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        except (OSError, RuntimeError):  # a handler has closed its descriptors
            pass

    def fire(
        self,
        listeners: Sequence[Call],
        event: Event,
        strict: bool = False,
        vetoes: Sequence[Call] | None = None,
    ) -> BaseException | None:
        """Calls them in order; the answer is that of firing()."""
        steps = firing(listeners, event, strict, vetoes)
        try:
            listener = next(steps)
            while True:
                listener = steps.send(self.call(listener, event))
        except StopIteration as end:
            answer: BaseException | None = end.value
            return answer


class Attempt:
    """One job in hand."""

    def __init__(self, worker: Worker, job: Job, index: int, problem: BaseException | None) -> None:
        self.worker = worker
        self.core = worker._core
        self.runner = worker._runner
        self.job = job
        self.index = index
        self.problem = problem
        self.handler: Call | None = None
        self.ending = _core.ENDED_DONE
        self.delay_ms = -1
        self.error: BaseException | None = None
        self.decided = False
        self.exited: int | None = None  # the status user code left with
        self.over = False

    def run(self) -> None:
        """All of it."""
        worker = self.worker
        if _core.interrupt_handler() is not _core.interrupt:  # a handler took it (rule D7)
            signal.signal(signal.SIGURG, _core.interrupt)
        if self._check() and self._find():
            self._run_handler()
            self.job._seal(self.ending)
            if worker._listeners:
                self._fire_end()
            self._run_cleanups()
        self.over = True
        self.error = self.handler = None  # freed before the job is settled (rule D1)
        self._go_back(worker._folder)
        flush_output()
        self._settle()

    # ---- how it ended ------------------------------------------------------------------------

    def _end(self, ending: int, delay_ms: int = -1) -> None:
        self.ending = ending
        self.delay_ms = delay_ms

    def _take_decision(self) -> bool:
        """release(), fail() and delete() stand, whatever comes after them (rule D3)."""
        decision = self.job._decision
        if decision is None:
            return False
        self._end(*decision)
        self.decided = True
        return True

    def _conclude(self, done: bool, value: Any) -> bool:
        """True: go on with the next step."""
        if done:
            return True
        if isinstance(value, SystemExit):
            self._conclude_exit(value)
        else:
            self._conclude_raise(value)
        return False

    def _conclude_raise(self, error: BaseException) -> None:
        kind, instead = self._interrupt()
        if instead is not None and isinstance(error, asyncio.CancelledError):
            error = instead.with_traceback(error.__traceback__)
        self.error = error
        if self._take_decision():
            report("the handler, after it had decided the job's end,", error)
            return
        self.job._set_error(error)
        self._end_by(error, kind)

    def _interrupt(self) -> tuple[int, BaseException | None]:
        """What was thrown into it, and as which exception."""
        kind = self.core.interrupted()
        return kind, self.core.interrupt_error() if kind else None

    def _retire(self, text: str) -> None:
        """This child runs nothing more."""
        self.core.retire(text)

    def _not_retried(self) -> list[str]:
        return self.core.dont_retry()

    def _end_by(self, error: BaseException, kind: int) -> None:
        if isinstance(error, PayloadError) and error.misfit:
            self._end(_core.ENDED_UNDECODABLE)
        elif kind == _core.INTERRUPT_TIMEOUT and self._is_ours(error, JobTimeout):
            self._end(_core.ENDED_TIMED_OUT)
        elif kind == _core.INTERRUPT_STOP and self._is_ours(error, JobStop):
            self._end(_core.ENDED_STOPPED)
        elif self._is_not_retryable(error):
            self._end(_core.ENDED_NOT_RETRYABLE)
        elif isinstance(error, RetryAfter):
            self._end(_core.ENDED_FAILED, int(error.seconds * 1000 + 0.5))
        else:
            self._end(_core.ENDED_FAILED)

    @staticmethod
    def _is_ours(error: BaseException, kind: type[BaseException]) -> bool:
        """Ours, or wrapped into another by a library in between."""
        if kind is JobStop:
            return isinstance(error, JobStop)
        return any(isinstance(one, (kind, asyncio.CancelledError)) for one in chain(error))

    def _is_not_retryable(self, error: BaseException) -> bool:
        """Worker and handler option dont_retry, and the application's NotRetryable."""
        if isinstance(error, NotRetryable):
            return True
        names = set(self._not_retried())
        if not names:
            return False
        return any(
            names & {kind.__name__, kind.__qualname__, class_name(kind)}
            for kind in type(error).__mro__
        )

    def _keep(self, result: Any) -> None:
        """For those who ask for it (rule N7); one that cannot be kept leaves the job done."""
        if result is None:
            return
        error = self.job._take_result(result)
        if error is not None:
            log.error("the result of %s %s cannot be kept: %s", self.job.name, self.job.id, error)

    def _conclude_exit(self, error: SystemExit) -> None:
        self.exited = exit_status(error)
        text = f"the handler called sys.exit({self.exited})"
        self._retire(text)
        if not self._take_decision():
            said = f": {error.code}" if isinstance(error.code, str) and error.code else ""
            self.job._set_error(text + said)
            self._end(_core.ENDED_EXITED)

    # ---- steps -------------------------------------------------------------------------------

    def _check(self) -> bool:
        """An unreadable body is kept as a dead job (rule A7)."""
        if self.problem is None:
            return True
        self.job._set_error(self.problem)
        memory = isinstance(self.problem, MemoryError)
        self._end(_core.ENDED_FAILED if memory else _core.ENDED_UNDECODABLE)
        return False

    def _find(self) -> bool:
        worker = self.worker
        if self.index >= 0:
            self.handler = worker._handlers[self.index].call
            return True
        if worker._resolver is not None:
            done, found = self.runner.call(worker._resolver, self.job.name)
            if not self._conclude(done, found):
                return False
            if found is not None:
                self.handler = worker._callable(found)
                return True
        known = any(handler.name == self.job.name for handler in worker._handlers)
        self._end(_core.ENDED_UNSUPPORTED_VERSION if known else _core.ENDED_UNKNOWN_NAME)
        return False

    def _event(self, name: str, data: dict[str, Any] | None = None) -> Event:
        return Event(name, self.job, self.job.queue, self.worker.queue.connection, data or {})

    def _run_handler(self) -> None:
        listeners = self.worker._listeners.get("job.processing", ())
        error = (
            self.runner.fire(listeners, self._event("job.processing"), True) if listeners else None
        )
        if error is not None:
            self._conclude(False, error)
            return
        context = contextvars.copy_context()
        done, value = self.core.call(context.run, self._entry())
        try:
            if value is not None and done:
                if isinstance(value, (GeneratorType, AsyncGeneratorType)):
                    done, value = False, self._generator()
                elif inspect.isawaitable(value):
                    done, value = self.runner.wait(value, context)
            if self._conclude(done, value) and not self._take_decision():
                self._keep(value)
        finally:
            del value  # see Runner.call

    def _entry(self) -> tuple[Any, ...]:
        """What is called, with its arguments: the handler, or the middleware round it."""
        if self.worker._middleware:
            return (self._chain, 0, self.job.payload)
        return (self.handler, self.job, self.job.payload)

    def _generator(self) -> TypeError:
        return TypeError(
            f'the handler of "{self.job.name}" returned a generator, which nobody runs: return '
            "instead of yielding"
        )

    def _chain(self, position: int, payload: Any) -> Any:
        """The middleware from that position on, the handler behind the last."""
        if position == len(self.worker._middleware):
            assert self.handler is not None
            return self._checked(self.handler(self.job, payload))

        def call_next(job: Job | None = None, other: Any = _MISSING) -> Any:
            if self.over:
                raise RuntimeError("the job has ended: its middleware cannot go on")
            return self._await_here(
                self._chain(position + 1, payload if other is _MISSING else other)
            )

        return self.worker._middleware[position](self.job, payload, call_next)

    def _checked(self, result: Any) -> Any:
        if isinstance(result, (GeneratorType, AsyncGeneratorType)):
            raise self._generator()
        return result

    def _await_here(self, result: Any) -> Any:
        """For a plain middleware the coroutine's result; for an async one something to await."""
        if _is_running_loop():
            return result if _is_awaitable(result) else _ready(result)
        if not _is_awaitable(result):
            return result
        done, value = self.runner.wait(result, contextvars.copy_context())
        try:
            if not done:
                raise value
            return value
        finally:
            del value

    def _fire_end(self) -> None:
        listeners, event = self._end_event()
        if event is not None:
            self._heard(self.runner.fire(listeners, event))

    def _end_event(self) -> tuple[Sequence[Call], Event | None]:
        """Which event tells of the end, and with which data, to whom."""
        name = _EVENT_OF_END.get(self.ending)
        data: dict[str, Any] = {}
        if self.error is not None and not self.decided:
            name = "job.exception"
            data = {"exception": self.error, "outcome": _core.outcome_word(self.ending)}
        listeners = self.worker._listeners.get(name or "", ())
        if not name or not listeners:
            return (), None
        if self.ending == _core.ENDED_RELEASED:
            data["delay"] = max(self.delay_ms, 0) / 1000
        return listeners, self._event(name, data)

    def _heard(self, error: BaseException | None) -> None:
        if isinstance(error, SystemExit):
            self.exited = exit_status(error)
            self._retire("a listener called sys.exit()")

    # ---- cleanups, freeing -------------------------------------------------------------------

    def _run_cleanups(self) -> None:
        """The last one given runs first; one may give another."""
        while (cleanup := self.job._next_defer()) is not None:
            done, error = self.runner.call(cleanup)
            if not done:
                self._conclude_cleanup(error)

    def _conclude_cleanup(self, error: BaseException) -> None:
        """A cleanup that fails is a failure of the job, unless that has ended worse already."""
        if isinstance(error, SystemExit):
            self.exited = exit_status(error)
            self.job._set_error(f"a deferred cleanup called sys.exit({self.exited})")
        else:
            self.job._set_error(error)
            report("a deferred cleanup", error)
        self._retire("a deferred cleanup failed")
        if self.ending in (_core.ENDED_DONE, _core.ENDED_RELEASED, _core.ENDED_FAILED):
            self._end(_core.ENDED_CLEANUP_FAILED)

    def _go_back(self, folder: str | None) -> None:
        """A handler's chdir() must not lead the next job astray (rule D7)."""
        if folder is None:
            return
        try:
            if os.getcwd() != folder:
                os.chdir(folder)
        except OSError:
            try:
                os.chdir(folder)
            except OSError as error:
                report("going back to the folder before the job", error)

    def _settle(self) -> None:
        try:
            self.core.settle(self.ending, self.delay_ms)
        except Exception as error:
            report(f"settling job {self.job.id}", error)


class Hook(Attempt):
    """The death of a job is told: to the log, to listeners of job.failed, to the handler's `failed`
    (rule F6). The hand-out is the hook's own; what fails here is tried again, three times in all.
    """

    def __init__(self, worker: Worker, job: Job, index: int, info: JobInfo | None) -> None:
        super().__init__(worker, job, index, None)
        self.info = info

    def _check(self) -> bool:
        return self.info is not None

    def _run_handler(self) -> None:
        assert self.info is not None
        error = self._recorded(self.info)
        # The first try, or the one before took its process with it: nobody may have heard of it.
        if self.job.failures == 0 and not self._tell(self.info, error):
            return
        hook = self.worker._handlers[self.index].failed if self.index >= 0 else None
        if hook is not None:
            self._conclude(*self.runner.call(hook, self.info, error))

    def _tell(self, info: JobInfo, error: RecordedError | None) -> bool:
        said = " ".join((str(error or "") or info.reason or "").split("\n"))  # one line
        log.error("Queue job %s %s failed permanently: %.2000s", info.name, info.id, said)
        listeners = self.worker._listeners.get("job.failed", ())
        data = {"id": info.id, "reason": info.reason, "info": info, "exception": error}
        event = Event("job.failed", None, info.queue, self.worker.queue.connection, data)
        failed = self.runner.fire(listeners, event)
        return failed is None or self._conclude(False, failed)

    @staticmethod
    def _recorded(info: JobInfo) -> RecordedError | None:
        """What it raised, as far as the record says: the exception itself died with its child."""
        last = info.last_error
        if last is None:
            return None
        error = RecordedError(last["message"] or "")
        error.class_name, error.place = last["class"], last["where"]
        error.recorded_trace = last["trace"]
        return error

    def _fire_end(self) -> None:
        """No event tells of a hook's end."""
