"""An event loop that computes itself: unsnarl does not help, since nobody else wants the GIL.

Reported: dask/distributed, issue 6325, where it is the loop's own thread; many questions about `async def` endpoints
Figure: late_p99_ms, ms, less is better: how late a task that sleeps for 5 ms wakes up
"""

from __future__ import annotations

import asyncio
import time

from parts import SECONDS, compute, percentile, report


async def main() -> None:
    """Compute for 20 ms at a time in one task, and sleep in another."""
    late: list[float] = []
    end = time.perf_counter() + SECONDS

    async def work() -> None:
        while time.perf_counter() < end:
            compute(0.02)
            await asyncio.sleep(0)

    async def tick() -> None:
        while time.perf_counter() < end:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append((time.perf_counter() - began - 0.005) * 1e3)

    await asyncio.gather(work(), tick())
    report(late_p99_ms=percentile(late, 0.99))


asyncio.run(main())
