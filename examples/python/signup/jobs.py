# SPDX-License-Identifier: MIT
"""The jobs of the application: python -m jobqueue work --app=signup.jobs:worker --queue=mail,default"""
from __future__ import annotations

import json
import re

from jobqueue import Job, NotRetryable, Worker, task

from signup.app import FOLDER, database, queue


class NoPicture(NotRetryable):
    """Trying again would not make one of it."""


def shrink(ppm: bytes, job: Job) -> bytes:
    """A picture in the PPM format at half its size: each pixel is the mean of four."""
    head = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", ppm)
    if not head or len(ppm) < head.end() + 3 * int(head[1]) * int(head[2]):
        raise NoPicture("this is no PPM picture")
    width, height, at = int(head[1]), int(head[2]), head.end()
    small = bytearray(b"P6\n%d %d\n255\n" % (width // 2, height // 2))
    for y in range(0, height - 1, 2):
        upper, lower = at + 3 * y * width, at + 3 * (y + 1) * width
        for x in range(0, 3 * (width - 1), 6):
            for c in range(x, x + 3):
                total = ppm[upper + c] + ppm[upper + c + 3] + ppm[lower + c] + ppm[lower + c + 3]
                small.append(total // 4)
        job.progress(100 * y / height, f"row {y} of {height}")
        job.checkpoint()  # cancelled, or the lease is lost: nobody wants it any more
    return bytes(small)


# A mail is a file that a mail program takes from the outbox: its name is the job's, so that a second run sends no second mail.
@task("mail.welcome", queue="mail")
def welcome(job: Job, user: int) -> None:
    connection = database()
    (email,) = connection.execute("SELECT email FROM users WHERE id = ?", [user]).fetchone()
    connection.close()
    (FOLDER / "outbox").mkdir(exist_ok=True)
    text = f"To: {email}\r\nSubject: Welcome\r\n\r\nIt is good to have you here.\r\n"
    (FOLDER / "outbox" / f"{job.id}.eml").write_text(text, newline="")


@task("picture.shrink")
def shrink_picture(job: Job, user: int, picture: bytes) -> dict[str, object]:
    small = shrink(picture, job)
    (FOLDER / "pictures").mkdir(exist_ok=True)
    (FOLDER / f"pictures/{user}.ppm").write_bytes(small)
    return {"file": f"pictures/{user}.ppm", "bytes": len(small)}


# From cron, every night: python -m jobqueue push report.nightly --track --id=report-$(date +%F) --idempotent
@task("report.nightly")
def report(job: Job) -> dict[str, int]:
    connection = database()
    (users,) = connection.execute("SELECT count(*) FROM users").fetchone()
    connection.close()
    made = {"users": users, "failed": sum(s.dead for s in queue.all_stats().values())}
    (FOLDER / f"{job.id}.json").write_text(json.dumps(made))
    return made


worker = Worker(queue, tasks=[welcome, shrink_picture, report], tries=3, timeout=60)
