"""One lock on two event loops: `asyncio.Lock` refuses it, `unsnarl.Lock` is made for it; nothing to switch on.

Reported: ecmwf/forecast-in-a-box, issue 317; apache/airflow, issue 64620
Figure: asyncio_errors, errors, less is better: with `asyncio.Lock`
Figure: unsnarl_errors, errors, less is better, against asyncio_errors: with `unsnarl.Lock`
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from parts import report

import unsnarl

ROUNDS = 50


def errors_with(lock: Any) -> int:
    """Return how many acquisitions failed on two loops in two threads."""
    failed = 0
    ready = threading.Barrier(2)

    async def use() -> None:
        nonlocal failed
        for _ in range(ROUNDS):
            try:
                async with lock:
                    await asyncio.sleep(0.0001)
            except RuntimeError:
                failed += 1

    def loop() -> None:
        ready.wait()
        asyncio.run(asyncio.wait_for(both(), 60))

    async def both() -> None:
        await asyncio.gather(use(), use())

    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


report(asyncio_errors=errors_with(asyncio.Lock()), unsnarl_errors=errors_with(unsnarl.Lock()))
