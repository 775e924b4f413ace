# SPDX-License-Identifier: MIT
"""Queue's methods for asyncio: they do not block the loop."""
from __future__ import annotations

import asyncio
import socket

import pytest

from jobqueue import PayloadError, Queue, State, task

pytestmark = pytest.mark.asyncio


@task("a.task", queue="mail")
async def a_task(n: int) -> None:
    ...


async def test_apush_and_friends(dsn: str) -> None:
    async with Queue(dsn) as queue:
        id = await queue.apush("a", {"n": 1}, queue="mail", priority=2, context={"t": "1"})
        found = await queue.afind(id)
        assert found is not None and found.payload == {"n": 1} and found.priority == 2
        assert await a_task.apush(queue, n=5)
        results = await queue.apush_many([("b", 1), ("c", {1})])
        assert isinstance(results[0], str) and isinstance(results[1], PayloadError)
        with pytest.raises(PayloadError):
            await queue.apush("a", {1})
        with pytest.raises(ValueError):
            await queue.apush("a", delay=-1)
        assert (await queue.astats("mail")).ready == 2 and "mail" in await queue.aqueues()
        assert [info.id for info in await queue.ajobs("mail", State.READY)][0] == id
        job = await queue.areserve("mail")
        assert job is not None and job.id == id
        job.fail("no")
        assert [info.id for info in await queue.adead(reason="failed_by_handler")] == [id]
        assert await queue.aretry(id) == 1 and await queue.aflush(all=True) == 0
        assert await queue.aping() >= 0 and len(await queue.aworkers()) >= 0


async def test_many_at_once(queue: Queue) -> None:
    await asyncio.gather(*(queue.apush("a", i) for i in range(100)))
    assert queue.stats("default").ready == 100


async def test_the_loop_goes_on_meanwhile() -> None:
    """A store that does not answer keeps nobody waiting but who asked it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        queue = Queue(f"redis://127.0.0.1:{port}/0", read_timeout=0.5, connect_timeout=0.5)
        pushing = asyncio.create_task(queue.apush("a"))
        ticks = 0
        while not pushing.done():
            await asyncio.sleep(0.01)
            ticks += 1
    assert pushing.exception() is not None and ticks > 5
