"""A lock that one task holds across an `await`, and that another takes synchronously on the loop's own thread.

Unsnarl does not help a synchronous call: it stops the loop, so the holder never comes to its release. The same lock can
be awaited.

Reported: apache/airflow, issue 65286
Figure: threading_ms, ms, less is better: until `threading.Lock` is taken; 1,000 is never
Figure: synchronous_ms, ms, less is better, against threading_ms: until `unsnarl.Lock` is taken by a synchronous call
Figure: awaited_ms, ms, less is better, against threading_ms: until `unsnarl.Lock` is taken by an `await`
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from parts import report

import unsnarl

LIMIT_S = 1.0
HELD_S = 0.01

Take = Callable[[Any], Awaitable[object]]


async def synchronous(lock: Any) -> bool:
    """Take the lock by a call that stops the loop, for the limit at most."""
    return bool(lock.acquire(timeout=LIMIT_S))


async def awaited(lock: Any) -> bool:
    """Take the lock by an await."""
    return bool(await asyncio.wait_for(lock.async_acquire(), LIMIT_S))


async def waited_ms(lock: Any, take: Take) -> float:
    """Return how long a task waits for the lock that another one holds for 10 ms."""
    held = asyncio.Event()

    async def hold() -> None:
        await take(lock)
        held.set()
        await asyncio.sleep(HELD_S)
        lock.release() if take is synchronous else lock.async_release()

    holder = asyncio.create_task(hold())
    await held.wait()
    began = time.perf_counter()
    has_it = await take(lock)
    waited_s = time.perf_counter() - began
    await holder
    return (waited_s if has_it else LIMIT_S) * 1e3


async def main() -> None:
    """Measure the three."""
    report(
        threading_ms=await waited_ms(threading.Lock(), synchronous),
        synchronous_ms=await waited_ms(unsnarl.Lock(), synchronous),
        awaited_ms=await waited_ms(unsnarl.Lock(), awaited),
    )


asyncio.run(main())
