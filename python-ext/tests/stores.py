# SPDX-License-Identifier: MIT
"""Stores that nobody has used before: SQLite, and each server that JOBQUEUE_TEST_REDIS, _POSTGRES and
_MARIADB name (./dev test starts them)."""
from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SERVERS = {
    "redis": "JOBQUEUE_TEST_REDIS",
    "postgres": "JOBQUEUE_TEST_POSTGRES",
    "mariadb": "JOBQUEUE_TEST_MARIADB",
}
KINDS = ["sqlite", *SERVERS]


def with_option(dsn: str, option: str) -> str:
    return dsn + ("&" if "?" in dsn else "?") + option


def fresh(kind: str, folder: Path) -> Iterator[str]:
    """Its DSN; what was made for it is removed afterwards."""
    name = "t" + secrets.token_hex(6)
    if kind == "sqlite":
        yield f"sqlite://{folder}/queue.db?synchronous=normal"
        return
    server = os.environ.get(SERVERS[kind])
    if not server:
        pytest.skip(f"no {kind} is here ({SERVERS[kind]})")
    if kind == "redis":
        yield with_option(server, f"prefix={name}")
    elif kind == "postgres":
        yield with_option(server, f"schema={name}")
    else:
        at = urlsplit(server)
        run = ["mariadb", "--no-defaults", "-h", str(at.hostname), "-P", str(at.port)]
        run += ["-u", str(at.username)]
        subprocess.run([*run, "-e", f"CREATE DATABASE {name}"], check=True, capture_output=True)
        yield server.rpartition("/")[0] + "/" + name
        subprocess.run([*run, "-e", f"DROP DATABASE {name}"], check=False, capture_output=True)
