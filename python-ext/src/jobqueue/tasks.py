# SPDX-License-Identifier: MIT
"""@task: a function that is pushed by its push() and gets the payload's map as arguments."""
from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from . import _core
from ._core import Job
from .errors import PayloadError
from .queue import Message, Queue, Value

P = ParamSpec("P")
R = TypeVar("R")

# Fixed when a job is pushed; whatever else the decorator is given is read when the job runs.
_AT_PUSH = (
    "queue",
    "delay",
    "priority",
    "expires",
    "on_expire",
    "retry_until",
    "track",
    "unique_scope",
    "on_duplicate",
    "max_wait",
)
_Kind = inspect.Parameter
_default: Queue | None = None


def set_default(queue: Queue | None) -> None:
    """The Queue that delay() pushes to; without one it is Queue(), made when first needed."""
    global _default
    _default = queue


def default() -> Queue:
    """The Queue that delay() pushes to."""
    global _default
    if _default is None:
        _default = Queue()
    return _default


def _wants_job(function: Callable[..., Any], first: inspect.Parameter) -> bool:
    """Is its first parameter annotated Job? Names that cannot be resolved are compared as text."""
    if first.kind not in (_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD):
        return False
    annotation = first.annotation
    if isinstance(annotation, str):
        try:
            annotation = typing.get_type_hints(inspect.unwrap(function))[first.name]
        except Exception:  # a name that exists for type checkers only
            return annotation.strip("'\"") in ("Job", "jobqueue.Job")
    return annotation is Job


def refuse_generator(function: Callable[..., Any], what: str) -> None:
    """A generator function would return at once without having done anything."""
    bare = function.func if isinstance(function, functools.partial) else function
    if inspect.isgeneratorfunction(bare) or inspect.isasyncgenfunction(bare):
        raise TypeError(
            f"{what} is a generator function: it would do nothing when called; "
            "return instead of yielding"
        )


def is_async(function: Any) -> bool:
    """Will calling it give something to await?"""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)
    )


def split_options(
    name: str, function: Any, options: dict[str, Any]
) -> tuple[Callable[..., Any] | None, bool, dict[str, Any]]:
    """The `failed` hook, whether jobs run side by side, and the options that the library knows."""
    known = dict(options)
    failed = known.pop("failed", None)
    if failed is not None and not callable(failed):
        raise TypeError("failed must be callable as failed(info, error)")
    if "maps" in known:
        raise ValueError('unknown option "maps": PHP alone has two kinds of maps')
    together = type(known.get("async_concurrency")) is int and known["async_concurrency"] != 1
    if together and not is_async(function):
        raise ValueError(f'async_concurrency: the handler of "{name}" is no async def')
    return failed, together, known


def misfit(text: str, path: str = "payload") -> PayloadError:
    """The payload fits no call of the function: the job is dead as undecodable."""
    error = PayloadError(f"{path}: {text}")
    error.error_code = "payload"
    error.path = path
    error.misfit = True
    return error


class Task(Generic[P, R]):
    """A function with a job's name. Calling it runs it here and now; push() makes a job of it."""

    def __init__(
        self,
        function: Callable[..., R],
        name: str,
        version: int = 1,
        unique: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError("@task stands over a function")
        refuse_generator(function, f'the task "{name}"')
        self.function = function
        self.name = name
        self.version = version
        self.unique = unique
        given = options or {}
        self.push_options = {key: given[key] for key in _AT_PUSH if given.get(key) is not None}
        self.options = {key: value for key, value in given.items() if key not in _AT_PUSH}
        handler = split_options(name, function, self.options)[2]
        _core.judge(name, {**self.push_options, "version": version, "unique": unique}, handler)
        self._read_signature()
        functools.update_wrapper(self, function)

    def _read_signature(self) -> None:
        parameters = list(inspect.signature(self.function).parameters.values())
        self.wants_job = bool(parameters) and _wants_job(self.function, parameters[0])
        if self.wants_job:
            parameters = parameters[1:]
        named = [
            p for p in parameters if p.kind in (_Kind.POSITIONAL_OR_KEYWORD, _Kind.KEYWORD_ONLY)
        ]
        if any(p.kind is _Kind.POSITIONAL_ONLY for p in parameters):
            raise TypeError(
                f'the task "{self.name}" has a positional-only parameter, but arguments '
                "come by name"
            )
        self._open = any(p.kind is _Kind.VAR_KEYWORD for p in parameters)
        self._known = frozenset(p.name for p in named)
        self._required = frozenset(p.name for p in named if p.default is _Kind.empty)
        self._signature = inspect.Signature(parameters)
        if self.unique is not None and not self._open and self.unique not in self._known:
            raise ValueError(
                f'the task "{self.name}" has no parameter "{self.unique}" to make a '
                "unique key of"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    # ---- pushing -----------------------------------------------------------------------------

    def _payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f'task "{self.name}": {error}') from None
        payload: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            if kind is _Kind.VAR_KEYWORD:
                payload.update(value)
            elif kind is not _Kind.VAR_POSITIONAL:
                payload[name] = value
            elif value:
                raise TypeError(f'the task "{self.name}" takes its arguments by name')
        return payload

    def _key(self, payload: dict[str, Any]) -> str:
        value = payload.get(self.unique or "")
        if value is None and self.unique in self._known:
            value = self._signature.parameters[self.unique].default
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ValueError(
                f'the task "{self.name}": unique: the parameter "{self.unique}" must '
                "hold a string or an int"
            )
        return f"{self.name}:{value}"

    def message(self, *args: P.args, **kwargs: P.kwargs) -> Message:
        """What push() would push, as an item for Queue.push_many()."""
        payload = self._payload(args, kwargs)
        options = dict(self.push_options)
        if self.version != 1:
            options.setdefault("version", self.version)
        if self.unique is not None and "unique" not in options:
            options["unique"] = self._key(payload)
        return (self.name, payload, options)

    def push(self, queue: Queue, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Pushes a job that will call the function with these arguments; returns its id."""
        name, payload, options = self.message(*args, **kwargs)  # type: ignore[misc]
        return queue.push(name, payload, **options)

    def push_statement(
        self, queue: Queue, /, *args: P.args, **kwargs: P.kwargs
    ) -> tuple[str, tuple[Value, ...]]:
        """What push() would do as (SQL, parameters) for the caller's own transaction."""
        name, payload, options = self.message(*args, **kwargs)  # type: ignore[misc]
        return queue.push_statement(name, payload, **options)

    async def apush(self, queue: Queue, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """push() for asyncio."""
        name, payload, options = self.message(*args, **kwargs)  # type: ignore[misc]
        return await queue.apush(name, payload, **options)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """push() to the Queue given to set_default, else to Queue()."""
        return self.push(default(), *args, **kwargs)

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """delay() for asyncio."""
        return await self.apush(default(), *args, **kwargs)

    def using(self, **options: Any) -> Task[P, R]:
        """The same task with other push options: using(queue="mail", delay=10).push(...)."""
        other = copy.copy(self)
        other.push_options = {**self.push_options, **options}
        plain = {key: value for key, value in options.items() if key not in ("context", "guard")}
        _core.judge(self.name, plain, {})
        return other

    # ---- running -----------------------------------------------------------------------------

    def run(self, job: Job, payload: Any) -> R:
        """Calls the function with the payload's map as keyword arguments."""
        if payload is None:
            payload = {}
        if not isinstance(payload, dict):
            raise misfit(f'the task "{self.name}" takes a map of its arguments')
        names = payload.keys()
        for name in self._required - names:
            raise misfit(f'the task "{self.name}" needs it', f"payload.{name}")
        if not self._open and not names <= self._known:
            odd = min(str(name) for name in names - self._known)
            raise misfit(f'the task "{self.name}" has no such parameter', f"payload.{odd}")
        if self._open and not all(isinstance(name, str) for name in names):
            raise misfit(f'the task "{self.name}" takes its arguments by name')
        return self.function(job, **payload) if self.wants_job else self.function(**payload)


class _Decorator(typing.Protocol):
    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], R], /) -> Task[P, R]:
        ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]:
        ...


def task(name: str, *, version: int = 1, unique: str | None = None, **options: Any) -> _Decorator:
    """Gives a function a job's name: @task("invoice.send", queue="mail", tries=5, timeout=60).

    queue, delay, priority, expires, on_expire, retry_until, track, version and unique (the name of
    the parameter whose value is the key) with unique_scope, on_duplicate and max_wait are fixed when
    a job is pushed; options of handlers (tries, timeout, backoff, ...) are read when it runs.
    """

    if callable(name):
        raise TypeError('@task needs the job\'s name: @task("invoice.send")')

    def decorate(function: Callable[..., Any], /) -> Task[Any, Any]:
        return Task(function, name, version, unique, options)

    return decorate
