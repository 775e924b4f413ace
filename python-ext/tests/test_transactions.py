# SPDX-License-Identifier: MIT
"""Pushing and finishing inside the application's own transaction (rules B8, O1), through sqlite3, psycopg
and PyMySQL."""
from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients import Database, open_database
from conftest import Program, wait_for
from jobqueue import PayloadError, Queue, State, Worker, task
from stores import KINDS, fresh


@pytest.fixture(params=[kind for kind in KINDS if kind != "redis"])
def dsn(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    yield from fresh(request.param, folder)


@pytest.fixture
def db(dsn: str, queue: Queue) -> Iterator[Database]:
    queue.migrate()
    database = open_database(dsn)
    yield database
    database.close()


def push(db: Database, queue: Queue, /, *args: Any, **options: Any) -> tuple[str, str]:
    """Inside of the open transaction: (id, what became of it)."""
    row = db.one(*queue.push_statement(*args, **options))
    assert row is not None
    return row[0], row[1]


def test_a_push_is_part_of_the_transaction(db: Database, queue: Queue) -> None:
    """Rolled back = never existed; committed = there, with all its options."""
    db.add(1)
    id, result = push(db, queue, "a", {"n": [1, "é", b"\xff", 2.5, None]}, id="order-1")
    assert (id, result) == ("order-1", "stored")
    assert queue.find("order-1") is None, "not committed yet"
    db.connection.rollback()
    assert queue.find("order-1") is None and db.numbers() == []
    options = dict(queue="mail", priority=7, delay=60, tries=9, unique="k", context={"trace": "x"})
    db.add(2)
    id, result = push(db, queue, "a", {"n": [1, "é", b"\xff", 2.5, None]}, track=True, **options)
    db.connection.commit()
    info = queue.find(id)
    assert result == "stored" and info is not None and db.numbers() == [2]
    assert info.payload == {"n": [1, "é", b"\xff", 2.5, None]} and info.state is State.DELAYED
    assert (info.queue, info.priority, info.context) == ("mail", 7, {"trace": "x"})
    assert info.options["tries"] == 9 and info.options["track"] is True


def test_refusals_are_rows(db: Database, queue: Queue) -> None:
    """A held key, a full queue or a known id leave the transaction usable."""
    first = queue.push("a", unique="k", id="first")
    queue.capacity("small", 1)
    queue.push("a", queue="small")
    db.add(1)
    assert push(db, queue, "a", unique="k") == (first, "held")
    assert push(db, queue, "a", id="first", idempotent=True) == (first, "held")
    assert push(db, queue, "a", id="first")[1] == "duplicate"
    assert push(db, queue, "a", queue="small")[1] == "full"
    assert push(db, queue, "a", 5, unique="k", on_duplicate="replace") == (first, "replaced")
    assert push(db, queue, "a", id="other") == ("other", "stored")
    db.add(2)
    db.connection.commit()
    info = queue.find(first)
    assert db.numbers() == [1, 2] and info is not None and info.payload == 5
    assert queue.stats("default").ready == 2 and queue.stats("small").ready == 1


def test_tasks_have_statements_too(db: Database, queue: Queue) -> None:
    @task("invoice.send", queue="mail", unique="invoice")
    def send(invoice: int) -> None:
        ...

    sql, params = send.push_statement(queue, invoice=7)
    assert db.one(sql, params)[1] == "stored"
    db.connection.commit()
    job = queue.reserve("mail")
    assert job is not None and (job.name, job.payload) == ("invoice.send", {"invoice": 7})
    job.done()


def test_a_commit_wakes_the_worker(db: Database, program: Program) -> None:
    """Rule B8."""
    process = program.start(
        """
        @on("a")
        def a(job, payload):
            note(payload)
            worker.stop()
        """,
        stop_when_empty=False,
    )
    wait_for(program.queue.workers, "the worker")
    db.add(1)
    push(db, program.queue, "a", "rolled back")
    db.connection.rollback()
    push(db, program.queue, "a", "committed")
    start = time.monotonic()
    db.connection.commit()
    assert program.end(process).ledger() == ["committed"]
    assert time.monotonic() - start < 20


def test_placeholders_as_other_clients_have_them(queue: Queue) -> None:
    texts = {
        style: queue.push_statement("a", "100%", paramstyle=style)
        for style in ("qmark", "format", "numeric")
    }
    (_, params), others = texts["qmark"], [texts["format"], texts["numeric"]]
    assert all(len(one[1]) == len(params) for one in others)
    assert texts["qmark"][0].count("?") == len(params) and "?" not in texts["numeric"][0]
    assert texts["format"][0].count("%s") == len(params)
    assert all(f"${n}" in texts["numeric"][0] for n in range(1, len(params) + 1))
    with pytest.raises(ValueError, match="paramstyle"):
        queue.push_statement("a", paramstyle="pyformat")
    with pytest.raises(TypeError, match="paramstyle"):
        queue.push_statement("a", paramstyle=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="paramstyle"):
        queue.push("a", paramstyle="qmark")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="nonsense"):
        queue.push_statement("a", nonsense=1)
    with pytest.raises(ValueError, match="delay"):
        queue.push_statement("a", delay=-1)


# ---- finishing -----------------------------------------------------------------------------------


def test_the_end_of_a_job_is_part_of_the_transaction(db: Database, queue: Queue) -> None:
    """Rule O1: the application's writes and the job's end commit together."""
    queue.push("a", id="first")
    job = queue.reserve()
    assert job is not None
    sql, params = job.done_statement()
    db.add(1)
    db.one(sql, params)
    db.connection.rollback()
    info = queue.find("first")
    assert info is not None and info.state is State.RESERVED and db.numbers() == []
    db.add(2)
    db.one(*job.done_statement())
    db.connection.commit()
    assert queue.find("first") is None and db.numbers() == [2]
    job.done()  # what it is already


def test_the_statement_carries_the_result(db: Database, program: Program, dsn: str) -> None:
    """Rules N7, O1: after reserve, inline and in a pool, whatever the handler returns."""
    queue = program.queue
    queue.push("a", track=True, id="reserved")
    job = queue.reserve()
    assert job is not None
    with pytest.raises(PayloadError):
        job.done_statement(result=object())
    db.one(*job.done_statement(result={"n": 1}))
    db.connection.commit()
    assert queue.wait("reserved", 0) == {"n": 1}

    def inline(job: Any, payload: Any) -> str:
        db.one(*job.done_statement(result=[2]))
        db.connection.commit()
        return "too late"

    queue.push("a", track=True, id="inline")
    assert Worker(queue, processes=0).handle("a", inline).run_next()
    assert queue.wait("inline", 0) == [2]
    queue.push("a", track=True, id="pool")
    ended = program.run(
        f"""
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from clients import open_database
        @on("a")
        def a(job, payload):
            db = open_database({dsn!r})
            db.one(*job.done_statement(result="three"))
            db.connection.commit()
            db.close()
        """
    )
    assert ended.code == 0 and queue.wait("pool", 0) == "three", ended.err


@pytest.mark.parametrize("returned", ["returned", None])
def test_a_rolled_back_statement_leaves_no_result(
    db: Database, queue: Queue, returned: Any
) -> None:
    """Rules N7, O1: its result is the statement's alone; then what the handler returns counts."""

    def rolls_back(job: Any, payload: Any) -> Any:
        db.one(*job.done_statement(result="never"))
        db.connection.rollback()
        return returned

    def goes_on(job: Any, payload: Any) -> Any:
        db.one(*job.done_statement(result="never"))
        db.connection.rollback()
        db.one(*job.done_statement())
        db.connection.commit()
        return returned

    worker = Worker(queue, processes=0, tries=1)
    worker.handle("rolls.back", rolls_back).handle("goes.on", goes_on)
    queue.push("rolls.back", track=True, id="first")
    assert worker.run_next() and queue.wait("first", 0) == returned
    queue.push("goes.on", track=True, id="second")
    assert worker.run_next() and queue.wait("second", 0) is None


def test_a_stale_token_makes_the_transaction_fail(db: Database, dsn: str, queue: Queue) -> None:
    """Rules O1, C3."""
    queue.push("a", id="first")
    job = queue.reserve(lease=1)
    assert job is not None
    statement = job.done_statement()
    other = wait_for(lambda: Queue(dsn).reserve(lease=60), "the lease to end", 60)
    assert other.id == "first"
    db.add(1)
    with pytest.raises(Exception):  # noqa: B017 (each client has classes of its own)
        db.one(*statement)
        db.connection.commit()
    db.connection.rollback()
    assert db.numbers() == []
    info = queue.find("first")
    assert info is not None and info.state is State.RESERVED
    other.done()
    assert queue.find("first") is None


def test_handlers_end_their_jobs_themselves(db: Database, program: Program, dsn: str) -> None:
    """Rule O1: in a pool and inline; the handler's return afterwards is no failure and no loss."""
    program.queue.push_many([("a", n, {"id": f"job-{n}"}) for n in range(5)])
    ended = program.run(
        f"""
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from clients import open_database
        @on("a")
        def a(job, payload):
            db = open_database({dsn!r})
            db.add(payload)
            db.one(*job.done_statement())
            db.connection.commit()
            db.close()
        """,
        processes=2,
    )
    assert ended.code == 0 and db.numbers() == [0, 1, 2, 3, 4], ended.err
    assert "lost" not in ended.out.lower() and ended.out.count("Processed:") == 5
    stats = program.queue.stats("default")
    assert (stats.backlog, stats.dead) == (0, 0)
    program.queue.push("a", 9, id="inline")

    def inline(job: Any, payload: Any) -> None:
        db.add(payload)
        db.one(*job.done_statement())
        db.connection.commit()

    assert Worker(program.queue, processes=0).handle("a", inline).run_next()
    assert program.queue.find("inline") is None and db.numbers()[-1] == 9
