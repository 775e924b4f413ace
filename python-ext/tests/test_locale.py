# SPDX-License-Identifier: MIT
"""A program whose locale has a comma for a decimal sign: no message and no line has it (rule G4)."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import locale, time
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.str(0.5) == "0,5"
from jobqueue import Queue, State, Worker
queue = Queue("memory:")
worker = Worker(queue, processes=0, tries=2, backoff=1.5, jitter=0, timeout=0.25, output="jobs")
worker.handle("slow", lambda job, payload: time.sleep(30))
queue.push("slow")
worker.run(max_jobs=1)
print(queue.jobs("default", State.DELAYED)[0].last_error["message"])
try:
    queue.wait(queue.push("never", track=True), timeout=0.25)
except TimeoutError as error:
    print(error)
print([finding["text"] for finding in queue.doctor() if finding["check"] == "connection"][0])
"""


def test_numbers_follow_no_locale(folder: Path) -> None:
    if shutil.which("localedef") is None:
        pytest.skip("no localedef here")
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("the sources of locales are not here")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LOCPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for said in (
        "retrying in 1.5 s: the job is over its time limit of 0.25 s",
        "\nthe job is over its time limit of 0.25 s\n",
        "had not ended after 0.25 s",
        "round trips 0.",
    ):
        assert said in ended.stdout, ended.stdout
