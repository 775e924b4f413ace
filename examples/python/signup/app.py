# SPDX-License-Identifier: MIT
"""What web page and worker share: the database, in which the queue lives too, and where mails and pictures go."""
from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from jobqueue import Queue

FOLDER = Path(os.environ.get("SIGNUP_FOLDER", "."))  # the environment says where everything lies
FILE = FOLDER / "signup.db"

queue = Queue(f"sqlite:{FILE}")


def database() -> sqlite3.Connection:
    """A connection of the caller's own; nobody may hold one open while the worker forks."""
    connection = sqlite3.connect(FILE, timeout=10, isolation_level=None)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS users "
        "(id INTEGER PRIMARY KEY, email TEXT UNIQUE, mail_job TEXT, picture_job TEXT)"
    )
    return connection


def push_in(connection: sqlite3.Connection, name: str, payload: Any, **options: Any) -> str:
    """Pushes inside the connection's transaction; the job's id."""
    sql, params = queue.push_statement(name, payload, **options)
    job, _result = connection.execute(sql, params).fetchone()
    return str(job)


def sign_up(email: str, picture: bytes) -> int:
    """User, welcome mail and picture are there together or not at all."""
    queue.migrate()  # once; a transaction of the application's cannot do it
    connection = database()
    try:
        connection.execute("BEGIN IMMEDIATE")
        user = connection.execute("INSERT INTO users (email) VALUES (?)", [email]).lastrowid
        mail = push_in(connection, "mail.welcome", {"user": user}, queue="mail")
        small = push_in(
            connection, "picture.shrink", {"user": user, "picture": picture}, track=True
        )
        connection.execute(
            "UPDATE users SET mail_job = ?, picture_job = ? WHERE id = ?", [mail, small, user]
        )
        connection.execute("COMMIT")
    finally:
        connection.close()  # without COMMIT nothing has been
    assert user is not None
    return user
