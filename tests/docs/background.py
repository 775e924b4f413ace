# SPDX-License-Identifier: MIT
# Beside a worker that is running already.
import asyncio, os, sys
import jobqueue
from jobqueue import *

sys.path.insert(0, os.environ["JOBQ_DOCS"])
from world import *

import subprocess

code = """
import sys
from jobqueue import Queue, Worker, task
@task("report.make")
def make(job: "Job", year: int) -> dict:
    job.progress(40, "pages")
    return {"file": f"report-{year}.pdf"}
from jobqueue import Job
sys.exit(Worker(Queue(), tasks=[make]).run(max_jobs=1))
"""
process = subprocess.Popen([sys.executable, "-c", code])
queue = Queue()
# SAMPLE
assert result == {"file": "report-2026.pdf"} and process.wait(30) == 0
