# SPDX-License-Identifier: MIT
"""The command line: `python -m jobqueue COMMAND`, the same as the program jobqueue."""
from __future__ import annotations

import importlib
import os
import platform
import signal
import sys
import traceback
from typing import Any

from . import _core
from .queue import Queue
from .worker import Worker

_told = 0  # modules that were told of under --reload


def _usage(text: str) -> int:
    """A usage error of the command line: one line on stderr, exit code 2 (rule J1)."""
    print(f"error: {text}", file=sys.stderr)
    return 2


def _find(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _load(source: str | None) -> Worker | int:
    """The Worker at MODULE:ATTR, or an exit code."""
    if not source:
        return _usage("work needs --app=MODULE:ATTR, where a jobqueue.Worker is")
    name, colon, attribute = source.partition(":")
    if not name or not colon or not attribute:
        return _usage(f'--app: MODULE:ATTR is expected, "{source}" given')
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    try:
        found = _find(importlib.import_module(name), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise
        return _usage(f'--app: there is no module "{name}"')
    except AttributeError:
        if name in sys.modules and not _has(sys.modules[name], attribute):
            return _usage(f'--app: the module "{name}" has no "{attribute}"')
        raise
    if not isinstance(found, Worker):
        return _usage(f'--app: "{source}" is not a jobqueue.Worker')
    return found


def _has(module: Any, path: str) -> bool:
    try:
        _find(module, path)
    except AttributeError:
        return False
    return True


def tell_loaded() -> None:
    """Under `work --reload`: the files that the program is made of by now."""
    global _told
    if not _core.console_reloads() or len(sys.modules) == _told:
        return
    _told = len(sys.modules)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py"):
            _core.console_loaded(os.path.abspath(path))


def _tell_error(error: BaseException) -> None:
    """A file that could not be loaded is no module: its exception names it."""
    if isinstance(error, SyntaxError) and error.filename:
        _core.console_loaded(os.path.abspath(error.filename))
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if os.path.isfile(frame.f_code.co_filename):
            _core.console_loaded(os.path.abspath(frame.f_code.co_filename))


class _Before:
    """What was known of the store before the application was loaded (rule L2). Nothing is made
    here, and a store that cannot be asked is the worker's business."""

    def __init__(self, dsn: str | None) -> None:
        self.named = dsn is not None
        self.shown: str | None = None
        self.generation = -1
        try:
            queue = Queue(dsn, migrate=False)
        except ValueError:
            if dsn is not None:
                raise
        else:
            self.shown = queue.dsn
            self.generation = queue._generation()
        if dsn is not None:  # Queue() in the application means that connection
            os.environ["JOBQUEUE_DSN"] = dsn

    def compare(self, worker: Worker) -> int:
        """0, or an exit code: the application uses another store than the command line says."""
        if self.shown == worker.queue.dsn:
            if self.generation >= 0:
                worker._core.set_generation(self.generation)
        elif self.named:
            return _usage(
                "work CONNECTION: the worker of --app has a connection of its own, "
                + worker.queue.dsn
            )
        return 0


def _work(source: str | None, dsn: str | None, queues: list[str], over: Any) -> int:
    try:
        before = _Before(dsn)
    except ValueError as error:
        return _usage(str(error))
    try:
        found = _load(source)
    except BaseException as error:
        _tell_error(error)
        raise
    finally:
        tell_loaded()
    if isinstance(found, int) or (code := before.compare(found)):
        return found if isinstance(found, int) else code
    return found._run(queues, over, found._output)


def run(argv: list[str] | None = None, worker: Worker | None = None) -> int:
    """Runs one command and returns its exit code; argv begins with the program's name.

    With a worker of the application's own, `work` runs that one: an application's command line is
    sys.exit(jobqueue.console.run(sys.argv, worker)).
    """
    if argv is None:
        argv = list(sys.argv)

    def work(source: str | None, dsn: str | None, queues: list[str], over: Any) -> int:
        _heed_signals()
        if worker is None:
            return _work(source, dsn, queues, over)
        tell_loaded()
        return worker._run(queues, over, worker._output)

    runtime = f"python {platform.python_version()}"
    return _core.console(argv, worker._core if worker is not None else None, work, runtime)


def _heed_signals() -> None:
    """As handlers know them from any Python program."""
    if signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    """What `python -m jobqueue` does: Ctrl-C and a closed pipe end it like any program in C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return run(["python -m jobqueue", *sys.argv[1:]])
