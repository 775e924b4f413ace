# SPDX-License-Identifier: MIT
"""Exceptions as error records (rule F5), and the end of a process that a handler forked."""
from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from types import TracebackType
from typing import NoReturn

log = logging.getLogger("jobqueue")
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TRACE_MAX = 60 * 1024
# Traces quote lines of source text, and some of those hold an address with a password (rule P2).
_PASSWORD = re.compile(r"(\w://[^\s:/@'\"]*):[^\s@'\"]+@")
_CHAIN_MAX = 16


def class_name(kind: type) -> str:
    """ "shop.errors.NoStock", "ValueError"."""
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """Its text; its own code may fail, and recording must not."""
    try:
        return str(error)
    except BaseException:  # whatever it is: there is nobody to be told
        return "<the exception's text cannot be made>"


def _own(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames of this package that called the handler."""
    while trace and trace.tb_next and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""


def _trace(error: BaseException) -> str:
    try:
        told = traceback.TracebackException(
            type(error), error, _own(error.__traceback__), limit=-100, compact=True
        )
        return _PASSWORD.sub(r"\1:***@", "".join(told.format())[:_TRACE_MAX])
    except BaseException:  # a repr of the application's, or an exhausted stack
        return ""


def record(error: BaseException) -> tuple[str, str, str, str]:
    """Class, message, file:line and trace, without the values of variables."""
    return class_name(type(error)), message_of(error), _where(error), _trace(error)


def chain(error: BaseException) -> list[BaseException]:
    """It and what it was raised from, nearest first."""
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in found and len(found) < _CHAIN_MAX:
        found.append(step)
        step = step.__cause__ or step.__context__
    return found


def report(where: str, error: BaseException) -> None:
    """One record to the logger "jobqueue" about an exception nobody can catch."""
    text = message_of(error)
    try:
        log.error("%s raised %s: %s", where, class_name(type(error)), text, exc_info=error)
    except BaseException:  # a handler of the application's that fails: nothing is left to do
        pass


def exit_status(error: SystemExit) -> int:
    """As the interpreter would end."""
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


def flush_output() -> None:
    """What was printed goes out now; a broken pipe is nobody's fault here."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed, replaced, or full
            pass


def leave_fork(error: BaseException | None) -> NoReturn:
    """A process forked by a handler that comes back from it ends here, like a program."""
    status = 0
    if isinstance(error, SystemExit):
        status = exit_status(error)
    elif error is not None:
        status = 1
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except BaseException:
            pass
    flush_output()
    os._exit(status & 255)
