# SPDX-License-Identifier: MIT
"""What the Python fragments of the documentation stand on: a queue, tables beside it, an application's own functions."""
import os
import sqlite3
from urllib.parse import urlsplit

from jobqueue import Queue, Worker

TABLES = {
    "orders": "id int PRIMARY KEY, total int, paid boolean",
    "payments": "id int",
    "accounts": "id int, balance int",
}


def tables(execute):
    """The application's tables, in the database that also holds the queue; anew for each sample."""
    for name, columns in TABLES.items():
        execute(f"DROP TABLE IF EXISTS {name}")
        execute(f"CREATE TABLE {name} ({columns})")
    execute("INSERT INTO orders VALUES (7, 120, FALSE)")
    execute("INSERT INTO accounts VALUES (1, 100)")


def own_database():
    """The DSN of a fresh database on the server of $JOBQUEUE_DSN, which from now on is that."""
    import psycopg

    name = f"docs_{os.getpid()}"
    with psycopg.connect(os.environ["JOBQUEUE_DSN"], autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    dsn = urlsplit(os.environ["JOBQUEUE_DSN"])._replace(path=f"/{name}").geturl()
    os.environ["JOBQUEUE_DSN"] = dsn
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables(connection.execute)
    return dsn


def own_tables():
    """The tables in the file of $JOBQUEUE_DSN."""
    file = sqlite3.connect(os.environ["JOBQUEUE_DSN"].removeprefix("sqlite:"), timeout=10)
    with file:
        tables(file.execute)
    file.close()


def run_all(worker, queue):
    """Runs what waits in this process; none of it may fail."""
    worker.run(["mail", "default"], stop_when_empty=True)
    for job in queue.dead():
        raise AssertionError(f"{job.name}: {job.reason} {job.last_error}")
    assert worker.statistics()["done"] > 0
