"""An event loop beside functions that compute in `asyncio.to_thread`.

Reported: damianvtran/local-operator, pull request 136; `def` endpoints in mozarkai/optics-framework, issue 455
Figure: late_p99_ms, ms, less is better: how late a task that sleeps for 5 ms wakes up
Figure: work, rounds/s, more is better: what the computing threads did
"""

from __future__ import annotations

import asyncio
import time

from parts import SECONDS, Spinners, percentile, report


async def main() -> None:
    """Sleep again and again, beside four threads."""
    late: list[float] = []
    with Spinners(4) as spinners:
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append((time.perf_counter() - began - 0.005) * 1e3)
        work = spinners.work
    report(late_p99_ms=percentile(late, 0.99), work=work)


asyncio.run(main())
