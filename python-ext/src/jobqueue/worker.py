# SPDX-License-Identifier: MIT
"""Worker: registration, and the loop over the core's steps in whichever process it runs."""
from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from . import _core
from .attempt import Attempt, Hook, Runner
from .faults import exit_status, flush_output, report
from .queue import Listener, Queue
from .records import Event
from .tasks import Task, is_async, refuse_generator, split_options
from .together import Together

Handler = Callable[..., Any]


class _Handler(NamedTuple):
    name: str
    call: Handler
    failed: Handler | None
    together: bool = False  # several of its jobs may run at once in a child


class Worker:
    """Runs jobs: Worker(queue, tasks=[send_invoice], processes=4).run(["high", "default"]).

    Options are those of doc/configuration.md; run() may override them.
    """

    def __init__(
        self, queue: Queue, *, tasks: Iterable[Task[..., Any]] = (), **options: Any
    ) -> None:
        self._output, options = _take_output(options)
        self._core = _core.Worker(queue, options)
        self.queue = queue
        self._runner = Runner(self._core)
        self._handlers: list[_Handler] = []
        self._middleware: list[Handler] = []
        self._listeners: dict[str, list[Listener]] = {}
        self._resolver: Callable[[str], Any] | None = None
        self._folder: str | None = None
        self._stopped = False  # by stop() in this process, not by a signal
        self._reloads = _core.console_reloads()
        self._started = False  # child.started was fired in this process, inline
        if isinstance(tasks, str) or not hasattr(tasks, "__iter__"):
            _core.refuse_type("tasks", tasks, "an iterable of tasks is expected")
        self.register(*tasks)

    # ---- registration ------------------------------------------------------------------------

    def handle(self, name: str, handler: Handler, version: int = 1, **options: Any) -> Worker:
        """Calls handler(job, payload), or awaits it, for jobs of that name and version.

        failed(info, error) is called when such a job has died, wherever it did, with its JobInfo
        and a RecordedError, what is kept of its last error (None: there was none).
        """
        call = self._callable(handler)
        refuse_generator(handler, f'the handler of "{name}"')
        function = handler.function if isinstance(handler, Task) else handler
        failed, together, options = split_options(name, function, options)
        self._core.handle(name, version, options)
        self._handlers.append(_Handler(name, call, failed, together))
        return self

    def register(self, *tasks: Task[..., Any]) -> Worker:
        """Runs these tasks under their names."""
        for one in tasks:
            if not isinstance(one, Task):
                raise TypeError("a task is what @task makes of a function; use handle() for others")
            self.handle(one.name, one, one.version, **one.options)
        return self

    def _callable(self, handler: Any) -> Handler:
        if isinstance(handler, Task):
            return handler.run
        if not callable(handler):
            raise TypeError("a handler must be callable as handler(job, payload)")
        found: Handler = handler
        return found

    def resolver(self, resolver: Callable[[str], Any]) -> Worker:
        """Asked for the handler of a name that is not registered; None: it knows none."""
        if not callable(resolver):
            raise TypeError("a resolver must be callable as resolver(name)")
        self._resolver = resolver
        self._core.set_resolver(True)
        return self

    def middleware(self, *middleware: Handler) -> Worker:
        """Wraps every handler: fn(job, payload, call_next), outermost first; may be async."""
        for one in middleware:
            if not callable(one):
                raise TypeError("a middleware must be callable as fn(job, payload, call_next)")
            if self._middleware and is_async(self._middleware[-1]) and not is_async(one):
                raise TypeError(
                    "a plain middleware cannot stand inside of an async one: it could "
                    "not wait for its handler"
                )
            self._middleware.append(one)
        return self

    def on(self, event: str, listener: Listener) -> Worker:
        """Calls listener(Event)."""
        if event == "job.pushed":
            raise ValueError('"job.pushed" is an event of a Queue, not of a Worker')
        if event not in _core.events():
            near = _core.event_nearest(event)
            known = [name for name in _core.events() if name != "job.pushed"]
            hint = (
                f', did you mean "{near}"?'
                if near in known
                else f"; a Worker has {', '.join(known)}"
            )
            raise ValueError(f'unknown event "{event}"{hint}')
        if not callable(listener):
            raise TypeError("on(): the listener must be callable")
        self._core.listen(event)
        self._listeners.setdefault(event, []).append(listener)
        return self

    # ---- asking ------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the worker when its running jobs have ended; from any of its processes."""
        self._stopped = True
        self._core.stop()

    def ready(self) -> bool:
        """Does it take jobs?"""
        return self._core.ready()

    def id(self) -> str:
        """host:pid:random"""
        return self._core.id()

    def statistics(self) -> dict[str, int]:
        """What the whole worker has counted so far."""
        return self._core.statistics()

    # ---- running -----------------------------------------------------------------------------

    def run(self, queues: str | Iterable[str] = (), **options: Any) -> int:
        """Runs jobs until told to stop; returns the exit code.

        stop_when_empty=True ends it when nothing is ready and nothing runs here: delayed jobs, and
        retries that wait for their backoff, are left to later runs. stop_when_empty_for=SECONDS, with
        more than the longest backoff, runs those retries, too.
        """
        output, options = _take_output(options)
        return self._run(queues, options, output if output is not None else self._output)

    def run_next(self, queues: str | Iterable[str] = ()) -> bool:
        """Runs at most one job here, silently; says whether there was one.

        A signal that asks the process to end waits for the job, then raises KeyboardInterrupt.
        """
        self._claim()
        self._stopped = False
        previous = signal.signal(signal.SIGURG, _core.interrupt)
        try:
            self._core.start(queues, None, True)
            _, jobs, status = self._run_inline(silent=True)
        finally:
            signal.signal(signal.SIGURG, previous or signal.SIG_DFL)
            _core.unclaim()
        if status is not None:
            sys.exit(status)
        if self._core.ended()[0] == "asked to shut down" and not self._stopped:
            raise KeyboardInterrupt
        return jobs > 0

    def _claim(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a worker runs in the main thread only")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError("a worker does not run inside of an event loop: it has its own")
        if not _core.claim():
            raise RuntimeError("a worker is running in this process already")

    def _run(self, queues: Any, over: Any, output: Any) -> int:
        self._check_together()
        self._claim()
        previous = signal.signal(signal.SIGURG, _core.interrupt)
        status: int | None = None
        try:
            self._apply_output(output)
            self._fire_or_leave("worker.starting")
            flush_output()
            role, code = self._core.start(queues, over, False)
            if role == _core.ROLE_CHILD:
                self._live_as_child()
            if role == _core.ROLE_INLINE:
                code, _, status = self._run_inline(silent=False)
        finally:  # a child never comes here
            signal.signal(signal.SIGURG, previous or signal.SIG_DFL)
            _core.unclaim()
            self._core.output(None)
        reason, jobs = self._core.ended()
        self._fire_or_leave("worker.stopping", {"reason": reason, "code": code, "jobs": jobs})
        if status is not None:
            sys.exit(status)
        return code

    def _runs_together(self) -> bool:
        return any(handler.together for handler in self._handlers)

    def _check_together(self) -> None:
        if self._runs_together() and not all(is_async(one) for one in self._middleware):
            raise TypeError(
                "a plain middleware cannot stand before handlers with async_concurrency: while it "
                "waited for one, no other could go on"
            )

    def _apply_output(self, output: Any) -> None:
        if output is None:
            return
        if callable(output):
            self._core.output(_line_function(output))
            return
        output.flush()
        self._core.output(output.fileno())

    def _fire(self, name: str, data: dict[str, Any] | None = None) -> BaseException | None:
        listeners = self._listeners.get(name)
        if not listeners:
            return None
        return self._runner.fire(
            listeners, Event(name, connection=self.queue.connection, data=data or {})
        )

    def _fire_or_leave(self, name: str, data: dict[str, Any] | None = None) -> None:
        error = self._fire(name, data)
        if error is not None:
            raise error

    # ---- the loop ----------------------------------------------------------------------------

    def _loop(self, child: bool) -> tuple[int, int | None]:
        """(jobs run, the status that inline user code left with)"""
        jobs = 0
        while True:
            step = self._core.next()
            if step[0] == _core.STEP_STOP:
                return jobs, None
            if step[0] == _core.STEP_EVENT:
                self._deliver(*step[1:])
                continue
            kind = Attempt if step[0] == _core.STEP_JOB else Hook
            jobs += kind is Attempt
            attempt = kind(self, step[1], step[2], step[3])
            del step  # nothing of the job outlives it
            attempt.run()
            if self._reloads:
                _tell_loaded()
            if attempt.exited is not None and not child:
                return jobs, attempt.exited
            del attempt

    def _run_one(self, attempt: Attempt) -> None:
        attempt.run()
        self._note_loaded()

    def _note_loaded(self) -> None:
        if self._reloads:
            _tell_loaded()

    def _deliver(self, name: str, job: Any, queue: str | None, data: dict[str, Any]) -> None:
        """An event that was decided elsewhere."""
        event = Event(name, job, queue, self.queue.connection, data)
        vetoes = [self._core.veto] if name == "looping" else None
        error = self._runner.fire(self._listeners.get(name, ()), event, vetoes=vetoes)
        if isinstance(error, SystemExit):
            self._core.retire("a listener called sys.exit()")

    def _note_folder(self) -> None:
        try:
            self._folder = os.getcwd()
        except OSError:
            self._folder = None

    def _run_inline(self, silent: bool) -> tuple[int, int, int | None]:
        """(exit code, jobs run, the status that user code left with)"""
        error: BaseException | None = None
        jobs, status = 0, None
        self._note_folder()
        try:
            if not silent or not self._started:
                self._started = True
                error = self._fire("child.started")
            if isinstance(error, SystemExit):
                status = exit_status(error)
            else:
                jobs, status = self._loop(child=False)
            if not silent:
                self._fire("child.stopping")
        finally:
            if not silent:
                self._runner.close()
            code = self._core.finish()
        return code, jobs, status

    def _live_as_child(self) -> NoReturn:
        """From the fork to _exit: nothing of the parent's stack is ever returned to."""
        try:
            gc.freeze()  # what the parent made is left alone, and its pages stay shared
            os.register_at_fork(after_in_child=_as_any_process)
            _line_buffered()
            self._note_folder()
            error = self._fire("child.started")
            if isinstance(error, SystemExit):
                self._core.retire("a listener of child.started called sys.exit()")
            if self._runs_together():
                Together(self).run()
            else:
                self._loop(child=True)
            self._fire("child.stopping")
            self._runner.close()
        except BaseException as error:
            report("the worker itself", error)
        flush_output()
        try:
            self._core.finish()
        finally:
            os._exit(1)


def _tell_loaded() -> None:
    from .console import tell_loaded

    tell_loaded()


# What a child of the worker takes no notice of, as it comes for its supervisor.
_UNHEEDED = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")


def _as_any_process() -> None:
    """In a process that a handler forked signals do what the program has set, so that
    multiprocessing can end its processes (rule D7)."""
    signal.signal(signal.SIGURG, signal.SIG_DFL)
    for number in (getattr(signal, name) for name in _UNHEEDED):
        handler = signal.getsignal(number)
        if handler is not None:
            signal.signal(number, handler)


def _line_buffered() -> None:
    """Output comes out line by line, so that none is lost when the process is killed (rule D7)."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)


def _take_output(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The option `output` when it is a stream or a callable, else None; and the others."""
    output = options.get("output")
    if output is None or isinstance(output, (str, bytes)):
        return None, options
    if not callable(output):
        try:
            output.fileno()
        except (AttributeError, OSError, ValueError):
            raise TypeError(
                "output: auto, jobs, summary, json, quiet, a path with a slash, an open "
                "stream with a file descriptor, or inline a callable is expected"
            ) from None
    return output, {key: value for key, value in options.items() if key != "output"}


def _line_function(output: Callable[[str], Any]) -> Callable[[str], None]:
    def line(text: str) -> None:
        try:
            output(text)
        except BaseException as error:  # whatever it does, the worker goes on
            report("the output callable", error)

    return line
