# SPDX-License-Identifier: MIT
"""Values to bytes and back (rules A2 to A7)."""
from __future__ import annotations

import base64
import json
import math
import struct
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from jobqueue import PayloadError, Queue, _core

PLACES = [
    ROOT / "tests/interop/vectors/payload.json",
    Path(__file__).parent / "interop/vectors/payload.json",
]
vectors = json.loads(next(path for path in PLACES if path.is_file()).read_text())


def value(form: Any) -> Any:
    """The typed JSON form of the golden vectors as a Python value."""
    if isinstance(form, list):
        return [value(item) for item in form]
    if not isinstance(form, dict):
        return form
    ((kind, inner),) = form.items()
    if kind == "$int":
        return int(inner)
    if kind == "$double":
        words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        return words[inner] if inner in words else struct.unpack(">d", bytes.fromhex(inner))[0]
    if kind == "$bytes":
        return base64.b64decode(inner)
    if kind == "$time":
        year, rest = inner.split("-", 1)
        return datetime.fromisoformat(f"{int(year):04}-{rest}")
    assert kind == "$map"
    return {value(key): value(item) for key, item in inner}


def same(a: Any, b: Any) -> bool:
    """Equal with kinds and order: 1 is not 1.0, -0.0 is not 0.0, NaN is NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items())
        return len(a) == len(b) and all(same(x, y) and same(v, w) for (x, v), (y, w) in pairs)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


@pytest.mark.parametrize("vector", vectors["good"], ids=lambda v: v["name"])
def test_golden_bytes_are_read_and_written(vector: dict[str, Any]) -> None:
    """Rule A5."""
    body, wanted = bytes.fromhex(vector["hex"]), value(vector["value"])
    assert same(_core.decode(body), wanted)
    if "NaN" not in vector["name"].replace("nan", "NaN"):
        assert _core.encode(wanted) == body


@pytest.mark.parametrize("vector", vectors["bad"], ids=lambda v: v["name"])
def test_malformed_bytes_are_refused(vector: dict[str, Any]) -> None:
    """Rule A6; the kind of error stands in the message."""
    with pytest.raises(PayloadError):
        _core.decode(bytes.fromhex(vector["hex"]))


def test_the_vectors_are_there() -> None:
    assert len(vectors["good"]) > 50 and len(vectors["bad"]) > 10


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Word(StrEnum):
    YES = "yes"


@dataclass
class Address:
    street: str
    lines: list[str] = field(default_factory=list)


Point = namedtuple("Point", "x y")


def test_kinds_of_python(queue: Queue) -> None:
    """Rule A3: what is no plain value travels as one."""
    when = datetime(2026, 11, 30, 12, 0, 0, 250, timezone(timedelta(hours=2)))
    queue.push(
        "kinds",
        {
            "enum": Colour.RED,
            "int_enum": Size.BIG,
            "str_enum": Word.YES,
            Word.YES: 1,
            "tuple": (1, (2,)),
            "point": Point(1, 2),
            "ordered": OrderedDict(b=1, a=2),
            "dataclass": Address("High St", ["x"]),
            "time": when,
            "bytes": b"\0\xff",
            "none": None,
            "list": [],
            "map": {},
            7: {"deep": [True, 1.0]},
            "bool": False,
        },
    )
    job = queue.reserve()
    assert job is not None
    assert job.payload == {
        "enum": "red",
        "int_enum": 3,
        "str_enum": "yes",
        "yes": 1,
        "tuple": [1, [2]],
        "point": [1, 2],
        "ordered": {"b": 1, "a": 2},
        "dataclass": {"street": "High St", "lines": ["x"]},
        "time": when,
        "bytes": b"\0\xff",
        "none": None,
        "list": [],
        "map": {},
        7: {"deep": [True, 1.0]},
        "bool": False,
    }
    assert type(job.payload["int_enum"]) is int and type(job.payload["enum"]) is str
    assert list(job.payload["ordered"]) == ["b", "a"]
    assert job.payload["time"].tzinfo is timezone.utc and job.payload["time"].microsecond == 250
    assert type(job.payload[7]["deep"][1]) is float
    job.done()


def cycle() -> Any:
    inner: list[Any] = []
    inner.append({"again": inner})
    return inner


def deep(n: int) -> Any:
    found: Any = 1
    for _ in range(n):
        found = [found]
    return found


class Custom:
    pass


def generator() -> Any:
    yield 1


@dataclass
class Holder:
    inside: Any


@pytest.mark.parametrize(
    ("bad", "path", "word"),
    [
        ({"a": datetime(2026, 1, 1)}, "payload.a", "naive datetime"),
        ({"a": [1, 2**64]}, "payload.a.1", "2^64"),
        ([-(2**63) - 1], "payload.0", "-2^63"),
        ({"user": {"name": "\ud800"}}, "payload.user.name", "lone surrogate"),
        ({"\udfff": 1}, "payload.?", "lone surrogate"),
        ({"a": {1, 2}}, "payload.a", "set"),
        (cycle(), "payload.0.again", "contains itself"),
        ([Custom()], "payload.0", "Custom"),
        ({"user": {"callback": lambda: 1}}, "payload.user.callback", "function"),
        ([generator()], "payload.0", "generator"),
        (deep(65), "payload" + ".0" * 64, "64 containers"),
        ({True: 1}, "payload.True", "bool"),
        ({1.5: 1}, "payload.1.5", "float"),
        ({1: "a", "1": "b"}, "payload.1", "same digits"),
        (Decimal("1.5"), "payload", "Decimal"),
        (date(2026, 1, 1), "payload", "date"),
        (Address, "payload", "type"),
        (Holder([1, {2}]), "payload.inside.1", "set"),
        (bytearray(b"x"), "payload", "bytearray"),
        (object, "payload", "type"),
    ],
)
def test_bad_values_are_refused_by_path(queue: Queue, bad: Any, path: str, word: str) -> None:
    """Rule A4: refused before anything is stored."""
    with pytest.raises(PayloadError) as caught:
        queue.push("bad", bad)
    assert caught.value.path == path
    assert word in str(caught.value) and str(caught.value).startswith(path)
    assert caught.value.error_code == "payload" and not caught.value.is_retryable()
    assert queue.queues() == [] or queue.stats("default").backlog == 0


def test_a_property_that_raises_comes_through(queue: Queue) -> None:
    class Odd(Enum):
        A = 1

        @property
        def value(self) -> Any:
            raise LookupError("no value")

    with pytest.raises(LookupError):
        queue.push("bad", [Odd.A])


def test_depth_64_and_the_size_limit(dsn: str) -> None:
    """Rule A4: 64 containers are fine; a body above max_payload is not."""
    queue = Queue(dsn, max_payload=1000)
    queue.push("deep", deep(64))
    with pytest.raises(PayloadError, match="1000"):
        queue.push("large", "x" * 1000)


def test_a_body_that_no_datetime_holds(queue: Queue) -> None:
    """A timestamp of the year 20000 is fine on the wire: here it is undecodable (rule A7)."""
    seconds = 568971820800
    body = b"\xc7\x0c\xff" + (0).to_bytes(4, "big") + seconds.to_bytes(8, "big")
    with pytest.raises(PayloadError, match="9999"):
        _core.decode(body)
