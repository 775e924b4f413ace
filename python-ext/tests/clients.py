# SPDX-License-Identifier: MIT
"""The application's own database, which is the one that the queue lies in, through its usual client."""
from __future__ import annotations

import sqlite3
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


class Database:
    """One connection of the application's, with transactions of its own, and a table `app (n int)`."""

    word = "%s"  # how its client writes a placeholder

    def __init__(self, dsn: str) -> None:
        self.connection = self.connect(dsn)
        self.one("CREATE TABLE IF NOT EXISTS app (n integer)")
        self.connection.commit()

    def connect(self, dsn: str) -> Any:
        raise NotImplementedError

    def one(self, sql: str, params: Any = ()) -> Any:
        """The first row of a statement's answer, None without one; in the open transaction."""
        cursor = self.connection.cursor()
        try:
            cursor.execute(sql, params)
            return cursor.fetchone() if cursor.description else None
        finally:
            cursor.close()

    def add(self, n: int) -> None:
        self.one(f"INSERT INTO app (n) VALUES ({self.word})", (n,))

    def numbers(self) -> list[int]:
        """What is committed."""
        self.connection.rollback()
        cursor = self.connection.cursor()
        cursor.execute("SELECT n FROM app ORDER BY n")
        found = [row[0] for row in cursor.fetchall()]
        cursor.close()
        self.connection.rollback()
        return found

    def close(self) -> None:
        self.connection.close()


class Sqlite(Database):
    word = "?"

    def connect(self, dsn: str) -> Any:
        return sqlite3.connect(urlsplit(dsn).path, timeout=30)


class Postgres(Database):
    def connect(self, dsn: str) -> Any:
        psycopg = pytest.importorskip("psycopg")
        base, _, query = dsn.partition("?")
        connection = psycopg.connect(base)
        schema = parse_qs(query)["schema"][0]
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS app_{schema}")
        connection.execute(f"SET search_path = app_{schema}")
        connection.commit()
        return connection


class Mariadb(Database):
    def connect(self, dsn: str) -> Any:
        pymysql = pytest.importorskip("pymysql")
        at = urlsplit(dsn)
        return pymysql.connect(
            host=at.hostname, port=at.port, user=at.username, database=at.path.strip("/")
        )


def open_database(dsn: str) -> Database:
    scheme = dsn.split(":")[0]
    kinds = {"sqlite": Sqlite, "postgresql": Postgres, "mysql": Mariadb}
    if scheme not in kinds:
        pytest.skip("no transactions of the application's there")
    return kinds[scheme](dsn)
