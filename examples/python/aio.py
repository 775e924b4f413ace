# SPDX-License-Identifier: MIT
"""A producer under asyncio: pushing does not block its loop. Takes the number of jobs."""
import asyncio
import sys

from jobqueue import Queue


async def main(n: int) -> None:
    async with Queue() as queue:
        ids = await asyncio.gather(
            *(
                queue.apush("thumbnail.make", {"file": f"cat{i}.jpg", "width": 320})
                for i in range(n)
            )
        )
        stats = await queue.astats("default")
        print(f"{len(set(ids))} pushed, {stats.ready} ready")


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
