# SPDX-License-Identifier: MIT
"""Workers with children: time limits, exits, crashes, signals, what handlers do to a process."""
from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
from typing import Any

import pytest

from conftest import Program, wait_for


def outcome(program_: Any, name: str) -> tuple[str, str, str]:
    info = program_.dead(name)
    last = info.history[-1]
    return info.reason, last["outcome"], last["message"] or ""


def test_tasks_of_a_pool(program: Program) -> None:
    """Rules C4, D1, E1: two children, a retry, an async handler, nothing twice."""
    program.queue.push_many([("plain", {"n": i}) for i in range(20)])
    program.queue.push_many([("later", {"n": i}) for i in range(20)])
    ended = program.run(
        """
        @task("plain", tries=2)
        def plain(job: Job, n: int):
            if n == 3 and job.attempt == 1:
                raise ValueError("first time")
            note("plain", n, os.getpid(), job.attempt)
        @task("later")
        async def later(n: int):
            await asyncio.sleep(0.001)
            note("later", n, os.getpid(), 1)
        worker.register(plain, later)
        """,
        processes=2,
        stop_when_empty=False,
        stop_when_empty_for=0.5,
    )
    assert ended.code == 0, ended.err
    ran = ended.ledger()
    assert sorted(row[1] for row in ran if row[0] == "plain") == list(range(20))
    assert sorted(row[1] for row in ran if row[0] == "later") == list(range(20))
    assert [row[3] for row in ran if row[:2] == ["plain", 3]] == [2]
    assert "Failed: plain" in ended.out and ended.out.splitlines()[-1] == "Ran 41 jobs"


SOFT = {
    "sleep": "time.sleep(60)",
    "loop": "while True: pass",
    "lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "recv": "import socket\na, b = socket.socketpair()\nwith a, b: a.recv(1)",
    "queue": "import queue as q; q.Queue().get()",
    "select": "import select; select.select([], [], [])",
    "regex": "import re; re.match(r'(a+)+$', 'a' * 64 + 'b')",
    "process": "subprocess.run(['sleep', '60'])",
    "join": "t = threading.Thread(target=time.sleep, args=(60,), daemon=True); t.start(); t.join()",
    "own_loop": "asyncio.run(asyncio.sleep(60))",
    "wrapped": """
try:
    time.sleep(60)
except JobTimeout as error:
    raise RuntimeError("a library in between") from error
""",
}


def test_soft_time_limits(program: Program) -> None:
    """Rule I1: JobTimeout comes out of sleeps, locks, reads, loops; nobody is
    killed, and the next job is none the worse."""
    text = ""
    for name, body in SOFT.items():
        text += (
            f"@on({name!r})\ndef {name}(job, payload):\n"
            + textwrap.indent(body.strip("\n"), "    ")
            + "\n"
        )
        program.queue.push(name)
        program.queue.push("next")
    text += "@on('next')\ndef after(job, payload): note(os.getpid())\n"
    ended = program.run(text, timeout=0.3, timeout_grace=30)
    assert ended.code == 0, ended.err
    for name in SOFT:
        reason, how, message = outcome(ended, name)
        assert (reason, how) == ("timed_out", "timed_out"), f"{name}: {reason} {how} {message}"
        assert "killed" not in message, name
    assert len(ended.ledger()) == len(SOFT) and len(set(ended.ledger())) == 1


def test_async_handlers_are_cancelled(program: Program) -> None:
    """Rule I1: the task is cancelled through its loop; the loop serves the next job."""
    for name in ("sleeps", "cleans", "waits", "next"):
        program.queue.push(name)
    ended = program.run(
        """
        @on("sleeps")
        async def sleeps(job, payload): await asyncio.sleep(60)
        @on("cleans")
        async def cleans(job, payload):
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.05)
                note("cleaned")
        @on("waits")
        async def waits(job, payload):
            await asyncio.gather(asyncio.sleep(60), asyncio.Event().wait())
        @on("next")
        async def after(job, payload): note("next")
        """,
        timeout=0.3,
    )
    assert ended.code == 0, ended.err
    for name in ("sleeps", "cleans", "waits"):
        reason, how, message = outcome(ended, name)
        assert (reason, how) == ("timed_out", "timed_out") and "killed" not in message, name
        assert ended.dead(name).last_error["class"] == "jobqueue.JobTimeout"  # type: ignore[index]
    assert ended.ledger() == ["cleaned", "next"]


def test_hard_time_limits(program: Program) -> None:
    """Rules I1, I2: one that swallows the exception, one long C call, a coroutine that never
    yields: killed, and the record says so."""
    for name in ("swallows", "c_call", "busy"):
        program.queue.push(name)
    program.queue.push("next")
    ended = program.run(
        """
        import itertools
        @on("swallows")
        def swallows(job, payload):
            while True:
                try: time.sleep(60)
                except JobTimeout: note("swallowed")
        @on("c_call")
        def c_call(job, payload): sum(itertools.repeat(1))
        @on("busy")
        async def busy(job, payload):
            while True: pass
        @on("next")
        def after(job, payload): note("next")
        """,
        timeout=0.3,
        timeout_grace=0.4,
    )
    assert ended.code == 0, ended.err
    for name in ("swallows", "c_call", "busy"):
        reason, how, message = outcome(ended, name)
        assert (reason, how) == ("timed_out", "timed_out") and "killed" in message, name
    assert ended.ledger() == ["swallowed", "next"]


def test_a_handler_that_returns_in_time_after_the_limit_is_done(program: Program) -> None:
    """Rule I2: finished work is never thrown away."""
    program.queue.push("late")
    ended = program.run(
        """
        @on("late")
        def late(job, payload):
            try: time.sleep(60)
            except JobTimeout: note("finished")
        """,
        timeout=0.3,
    )
    assert ended.code == 0 and ended.ledger() == ["finished"] and ended.queue.dead() == []


def test_exits_and_crashes(program: Program) -> None:
    """Rules D4, D5: exactly the job that did it is blamed, its neighbours run."""
    names = ["exits", "os_exit", "segv", "kill", "abort", "async_exit"]
    for name in names:
        program.queue.push(name)
        program.queue.push("good")
    ended = program.run(
        """
        import ctypes, faulthandler
        nowhere = os.open(os.devnull, os.O_WRONLY)
        faulthandler.enable(file=nowhere)
        @on("exits")
        def exits(job, payload): sys.exit(3)
        @on("os_exit")
        def os_exit(job, payload): os._exit(4)
        @on("segv")
        def segv(job, payload): ctypes.string_at(0)
        @on("kill")
        def kill(job, payload): os.kill(os.getpid(), signal.SIGKILL)
        @on("abort")
        def abort(job, payload): os.abort()
        @on("async_exit")
        async def async_exit(job, payload):
            await asyncio.sleep(0)
            raise SystemExit(5)
        @on("good")
        def good(job, payload): note("good")
        """,
        max_crashes=1,
    )
    assert ended.code == 0, ended.err
    assert ended.ledger() == ["good"] * len(names)
    assert outcome(ended, "exits")[1] == "exited" and "3" in outcome(ended, "exits")[2]
    assert outcome(ended, "async_exit")[1] == "exited" and "5" in outcome(ended, "async_exit")[2]
    assert outcome(ended, "os_exit")[1] == "exited" and "4" in outcome(ended, "os_exit")[2]
    for name, word in (("segv", "11"), ("kill", "9"), ("abort", "6")):
        reason, how, message = outcome(ended, name)
        assert (reason, how) == ("crashed", "crashed") and word in message, (name, message)


def test_what_handlers_do_to_their_process(program: Program) -> None:
    """Rule D7: forks, threads, multiprocessing, signal handlers, descriptors, folders, logging."""
    names = [
        "forks",
        "pool",
        "thread",
        "signals",
        "alarm",
        "closes",
        "moves",
        "logs",
        "atexit",
        "exec",
    ]
    for name in names:
        program.queue.push(name)
        program.queue.push("limit")  # the time limit works after each of them
    ended = program.run(
        """
        import multiprocessing, concurrent.futures
        def double(x): return 2 * x
        @on("forks")
        def forks(job, payload):
            if os.fork() == 0: return          # comes back from the handler: settles nothing
            if os.fork() == 0: raise ValueError("in the forked process")
            if os.fork() == 0: sys.exit(7)
            statuses = sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3))
            note("forks", statuses)
        @on("pool", timeout=30)
        def pool(job, payload):
            sleeper = multiprocessing.Process(target=time.sleep, args=(60,))
            sleeper.start()
            sleeper.terminate()
            sleeper.join()
            with multiprocessing.Pool(2) as p:
                note("pool", p.map(double, [1, 2]), sleeper.exitcode)
            with concurrent.futures.ThreadPoolExecutor(2) as e: list(e.map(double, [1]))
        @on("thread")
        def thread(job, payload):
            threading.Thread(target=time.sleep, args=(0.5,)).start()
            note("thread")
        @on("signals")
        def signals(job, payload):
            for number in (signal.SIGURG, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG, signal.SIGTERM})
            note("signals")
        @on("alarm")
        def alarm(job, payload):
            hits = []
            signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            time.sleep(0.1)
            note("alarm", len(hits))
        @on("closes")
        def closes(job, payload):
            os.closerange(3, 256)
            with open(os.devnull) as f: pass
            note("closes")
        @on("moves")
        def moves(job, payload):
            os.chdir("/")
            note("moves")
        @on("logs")
        def logs(job, payload):
            logging.basicConfig(level=logging.INFO)
            logging.getLogger("app").info("a line of the application")
            print("printed by a handler")
            sys.stdout.write("no end of line")
            note("logs", os.getcwd() != "/")
        @on("atexit")
        def at_exit(job, payload):
            import atexit
            atexit.register(note, "must not run twice or hang")
            note("atexit")
        @on("exec")
        def run(job, payload):
            done = subprocess.run(["echo", "x"], capture_output=True)
            note("exec", done.stdout.decode().strip())
        @on("limit", timeout=0.5)
        def limit(job, payload): time.sleep(60)
        @on("async")
        async def later(job, payload): note("async")
        """
    )
    assert ended.code == 0, ended.err
    rows = {row if isinstance(row, str) else row[0]: row for row in ended.ledger()}
    assert set(names) <= set(rows), ended.out + ended.err
    assert (
        rows["forks"][1] == [0, 1, 7]
        and rows["pool"][1:] == [[2, 4], -signal.SIGTERM]
        and rows["alarm"][1] == 1
    )
    assert rows["logs"][1] is True and rows["exec"][1] == "x"
    dead = ended.queue.dead(limit=100)
    assert {info.name for info in dead} == {"limit"} and len(dead) == len(names), ended.out
    assert {info.reason for info in dead} == {"timed_out"}
    assert not any("killed" in str(info.history[-1]["message"]) for info in dead), ended.out
    assert (
        "printed by a handler\n" in ended.out and "INFO:app:a line of the application" in ended.err
    )
    assert "ValueError: in the forked process" in ended.err


def test_a_loop_whose_descriptors_are_gone_is_made_anew(program: Program) -> None:
    """Rule D7."""
    for name in ("later", "closes", "later"):
        program.queue.push(name)
    ended = program.run(
        """
        @on("closes")
        def closes(job, payload): os.closerange(3, 256)
        @on("later")
        async def later(job, payload):
            await asyncio.sleep(0.01)
            note("later")
        """
    )
    assert ended.code == 0 and ended.ledger() == ["later", "later"] and ended.queue.dead() == []


def test_output_of_a_killed_child_is_not_lost(program: Program) -> None:
    """Rule D7."""
    program.queue.push("a")
    ended = program.run(
        """
        @on("a")
        def a(job, payload):
            print("a line before the end")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        max_crashes=1,
    )
    assert "a line before the end\n" in ended.out


def test_events_of_a_pool(program: Program) -> None:
    """Rule M1: in which process, and with what."""
    program.queue.push("crash")
    program.queue.push("slow")
    program.queue.push("again")
    ended = program.run(
        """
        master = os.getpid()
        for name in ("worker.starting", "worker.stopping", "child.started", "child.stopping",
                     "job.crashed", "job.timed_out", "job.retrying"):
            def listener(event, name=name):
                note(name, os.getpid() == master, event.job and event.job.name, event.data)
            worker.on(name, listener)
        @on("crash")
        def crash(job, payload): os.kill(os.getpid(), signal.SIGKILL)
        @on("slow", timeout=0.2)
        def slow(job, payload): time.sleep(60)
        @on("again", tries=2)
        def again(job, payload):
            if job.attempt == 1: raise ValueError("once")
        """,
        max_crashes=1,
    )
    assert ended.code == 0, ended.err
    rows = ended.ledger()
    assert rows[0][:2] == ["worker.starting", True] and rows[-1][:2] == ["worker.stopping", True]
    assert rows[-1][3]["code"] == 0 and rows[-1][3]["reason"]
    by_name = {row[0]: row for row in rows}
    for name, job in (
        ("job.crashed", "crash"),
        ("job.timed_out", "slow"),
        ("job.retrying", "again"),
    ):
        assert by_name[name][1:3] == [False, job], rows
    assert by_name["child.started"][1] is False and by_name["child.stopping"][1] is False


def test_the_failed_hook_of_a_job_that_died_with_its_process(program: Program) -> None:
    """Rule F6: in a living child."""
    program.queue.push("crash", {"n": 1})
    program.queue.push("slow")
    ended = program.run(
        """
        def failed(info, error):
            note(info.name, info.reason, info.payload, error.class_name, os.getpid())
        @on("crash", failed=failed)
        def crash(job, payload):
            note("pid", os.getpid())
            os.kill(os.getpid(), signal.SIGKILL)
        @on("slow", timeout=0.2, failed=failed)
        def slow(job, payload): time.sleep(60)
        """,
        max_crashes=1,
    )
    assert ended.code == 0, ended.err
    rows = {row[0]: row for row in ended.ledger()}
    assert rows["crash"][1:4] == ["crashed", {"n": 1}, None] and rows["crash"][4] != rows["pid"][1]
    assert rows["slow"][1:4] == ["timed_out", None, "jobqueue.JobTimeout"]
    assert "Queue job crash " in ended.err and "failed permanently" in ended.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_lets_running_jobs_finish(program: Program, number: signal.Signals) -> None:
    """Rule H1; a stop request is noticed at once also when idle."""
    program.queue.push("a")
    process = program.start(
        """
        @on("a")
        def a(job, payload):
            note("began")
            while not job.is_stopping(): time.sleep(0.01)
            time.sleep(0.1)
            note("ended")
        """,
        stop_when_empty=False,
    )
    wait_for(lambda: (program.folder / "ledger").exists(), "the job to begin")
    process.send_signal(number)
    ended = program.end(process)
    assert ended.code == 0 and ended.ledger() == ["began", "ended"] and ended.queue.dead() == []
    assert "Stopping: asked to shut down" in ended.out


def test_ctrl_c_ends_an_idle_worker_at_once(program: Program) -> None:
    """Rules H1, H2: without a traceback."""
    process = program.start("", stop_when_empty=False, sleep=60)
    assert process.stdout is not None
    assert "watching" in process.stdout.readline()
    wait_for(lambda: program.queue.workers(), "the worker to register")
    import time

    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    ended = program.end(process)
    assert ended.code == 0 and "Traceback" not in ended.err and time.monotonic() - begun < 10


def test_a_second_stop_raises_job_stop(program: Program) -> None:
    """Rule H1: given back uncounted."""
    program.queue.push("plain")
    program.queue.push("later")
    process = program.start(
        """
        @on("plain")
        def plain(job, payload):
            note("began")
            try: time.sleep(60)
            except JobStop as error: note(str(error)); raise
        @on("later")
        async def later(job, payload):
            note("began")
            await asyncio.sleep(60)
        """,
        stop_when_empty=False,
        processes=2,
        timeout=0,
    )
    wait_for(
        lambda: len((program.folder / "ledger").read_text().splitlines()) == 2
        if (program.folder / "ledger").exists()
        else False,
        "both jobs to begin",
    )
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    ended = program.end(process)
    assert ended.code == 0, ended.err
    assert len(ended.ledger()) == 3 and "stops" in ended.ledger()[2]
    for name in ("plain", "later"):
        job = next(j for j in ended.queue.jobs("default", "ready") if j.name == name)
        assert (job.failures, job.crashes) == (0, 0) and job.attempt == 1


def test_stop_ready_statistics_from_a_handler(program: Program) -> None:
    """Rule G5."""
    program.queue.push("a")
    program.queue.push("b", delay=3600)
    ended = program.run(
        """
        @on("a")
        def a(job, payload):
            end = time.monotonic() + 20
            while not worker.ready() and time.monotonic() < end: time.sleep(0.01)
            note(worker.ready(), worker.statistics()["received"], ":" in worker.id())
            worker.stop()
        """,
        stop_when_empty=False,
    )
    assert ended.code == 0 and ended.ledger() == [[True, 1, True]]


def test_threads_of_the_program_go_on_in_the_master(program: Program) -> None:
    """The master gives the interpreter's lock up while the pool runs, also round its forks."""
    for _ in range(3):
        program.queue.push("a")
    ended = program.run(
        """
        ticks = []
        def tick():
            while True:
                ticks.append(time.monotonic())
                time.sleep(0.01)
        threading.Thread(target=tick, daemon=True).start()
        @on("a")
        def a(job, payload): time.sleep(0.2)
        worker.on("worker.stopping", lambda event: note(len(ticks)))
        """,
        recycle_jobs=1,
    )
    assert ended.code == 0, ended.err
    assert ended.ledger()[0] > 20


def test_random_numbers_differ_between_children(program: Program) -> None:
    """Children are not copies of one another."""
    program.queue.push_many([("a", None)] * 4)
    ended = program.run(
        """
        import random
        random.seed(1)
        @on("a")
        def a(job, payload): note(random.random())
        """,
        recycle_jobs=1,
    )
    assert ended.code == 0 and len(set(ended.ledger())) == 4


def test_a_refused_start_is_an_exception(program: Program) -> None:
    """Rule J1 for programs: a usage error raises, and the process is as before."""
    path = program.write(
        """
        before = signal.getsignal(signal.SIGURG), signal.getsignal(signal.SIGTERM)
        try:
            worker.run("bad,,name")
        except ValueError as error:
            after = signal.getsignal(signal.SIGURG), signal.getsignal(signal.SIGTERM)
            note(str(error), after == before)
        """
    )
    assert os.system(f"{sys.executable} {path} >/dev/null 2>&1") == 0
    rows = [json.loads(line) for line in (program.folder / "ledger").read_text().splitlines()]
    assert rows[0][1] is True and "queue" in rows[0][0]
