# SPDX-License-Identifier: MIT
"""python -m jobqueue: the same command line as the program's."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for
from jobqueue import Queue

APP = """
import os, jobqueue
from jobqueue import Queue, Worker, task
@task("greet")
def greet(to: str) -> None:
    print("hello", to, flush=True)
worker = Worker(Queue(os.environ["JOBQUEUE_DSN"]), tasks=[greet], tries=1)
class nested:
    inner = worker
other = 3
"""


def console(
    folder: Path, dsn: str, *arguments: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    (folder / "shop").mkdir(exist_ok=True)
    (folder / "shop/jobs.py").write_text(APP)
    (folder / "shop/fixed.py").write_text(
        APP.replace('os.environ["JOBQUEUE_DSN"]', '"sqlite:fixed.db"')
    )
    (folder / "shop/broken.py").write_text("import nothing_of_that_name\n")
    return subprocess.run(
        [sys.executable, "-m", "jobqueue", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**os.environ, "JOBQUEUE_DSN": dsn},
        **options,
    )


def test_commands(folder: Path, dsn: str) -> None:
    pushed = console(folder, dsn, "push", "greet", '{"to": "Ada"}')
    assert pushed.returncode == 0 and len(pushed.stdout.strip()) == 36
    assert "default" in console(folder, dsn, "stats").stdout
    version = console(folder, dsn, "version")
    assert "python 3." in version.stdout and version.returncode == 0
    odd = console(folder, dsn, "stat")
    assert odd.returncode == 2 and "stats" in odd.stderr
    assert "--app" in console(folder, dsn, "work", "--help").stdout


def test_work_runs_the_applications_worker(folder: Path, dsn: str) -> None:
    Queue(dsn).push("greet", {"to": "Ada"})
    done = console(folder, dsn, "work", "--app=shop.jobs:worker", "--stop-when-empty")
    assert done.returncode == 0, done.stderr
    assert "hello Ada" in done.stdout and "Ran 1 job" in done.stdout
    Queue(dsn).push("greet", {"to": "Bea"}, queue="mail")
    done = console(
        folder,
        dsn,
        "work",
        "--app=shop.jobs:nested.inner",
        "--queue=mail",
        "--once",
        "--processes=0",
    )
    assert done.returncode == 0 and "hello Bea" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["work"], "--app"),
        (["work", "--app=shop.jobs"], "MODULE:ATTR"),
        (["work", "--app=shop.nothing:worker"], "no module"),
        (["work", "--app=shop.jobs:nothing"], "nothing"),
        (["work", "--app=shop.jobs:other"], "Worker"),
        (["work", "--app=shop.fixed:worker", "--dsn=memory:"], "connection of its own"),
        (["work", "--app=shop.jobs:worker", "--nonsense"], "nonsense"),
    ],
)
def test_usage_errors(folder: Path, dsn: str, arguments: list[str], word: str) -> None:
    """Rule J1."""
    done = console(folder, dsn, *arguments)
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr


def test_an_application_that_cannot_be_loaded_shows_why(folder: Path, dsn: str) -> None:
    done = console(folder, dsn, "work", "--app=shop.broken:worker")
    assert (
        done.returncode == 1
        and "nothing_of_that_name" in done.stderr
        and "Traceback" in done.stderr
    )


def test_work_on_a_connection_of_the_command_line(folder: Path, dsn: str) -> None:
    """`work DSN` is what Queue() in the application means."""
    Queue(dsn).push("greet", {"to": "Dee"})
    env_dsn = f"sqlite://{folder}/other.db"
    done = console(folder, env_dsn, "work", dsn, "--app=shop.jobs:worker", "--stop-when-empty")
    assert done.returncode == 0 and "hello Dee" in done.stdout, done.stderr


def test_reload_starts_anew_when_a_module_changes(folder: Path, dsn: str) -> None:
    """Also a module that was loaded by the application."""
    queue = Queue(dsn)
    console(folder, dsn, "ping")
    (folder / "words.py").write_text("WORD = 'before'\n")
    (folder / "live.py").write_text(
        "import words\nfrom jobqueue import Queue, Worker\n"
        "def say(job, payload): print(words.WORD, flush=True)\n"
        f"worker = Worker(Queue({dsn!r})).handle('say', say)\n"
    )
    env = {**os.environ, "JOBQUEUE_DSN": dsn, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "jobqueue", "work", "--app=live:worker", "--reload"],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    queue.push("say")
    wait_for(lambda: queue.stats("default").backlog == 0, "the first job")
    (folder / "words.py").write_text("WORD = 'changed and longer'\n")
    first = queue.workers()[0]["id"]
    wait_for(lambda: any(one["id"] != first for one in queue.workers()), "another worker")
    queue.push("say")
    wait_for(lambda: queue.stats("default").backlog == 0, "the second job")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert "before" in out and "changed and longer" in out, out


def test_a_program_brings_its_own_worker(folder: Path, dsn: str) -> None:
    (folder / "manage.py").write_text(
        "import sys\nfrom shop.jobs import worker\nimport jobqueue\n"
        "sys.exit(jobqueue.console.run(sys.argv, worker))\n"
    )
    console(folder, dsn, "push", "greet", '{"to": "Cy"}')
    run = [sys.executable, "manage.py"]
    env = {**os.environ, "JOBQUEUE_DSN": dsn}
    done = subprocess.run(
        [*run, "work", "--stop-when-empty"], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0 and "hello Cy" in done.stdout, done.stderr
    odd = subprocess.run(
        [*run, "work", "--app=x:y"], cwd=folder, env=env, capture_output=True, text=True
    )
    assert odd.returncode == 2 and "app" in odd.stderr


def test_signals_of_the_command_line(folder: Path, dsn: str) -> None:
    """Ctrl-C ends a watching command like any program in C, and `work` in peace."""
    console(folder, dsn, "push", "greet", '{"to": "Ada"}')
    env = {**os.environ, "JOBQUEUE_DSN": dsn, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "jobqueue", "work", "--app=shop.jobs:worker"],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: Queue(dsn).stats("default").backlog == 0, "the job to be done")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "asked to shut down" in out and "Traceback" not in err
