"""How long a lock takes from one waiter to the next, and how many requests that costs, by the number of waiters.

Waiters are tasks, spread over four connections. The first holder releases when all wait; each that is served releases
at once, or after it has held for a while. A hand-over is from the call of a release to the next task's first
statement with the lock: the release's request, the store's word to the next, and the wake-up of its task.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from bench.cluster.peers import url_of

CONNECTIONS = 4


def connections(store: str) -> list[Any]:
    """Return connections to a namespace of their own."""
    from unsnarl import cluster

    separator = "/" if store == "etcd" else "?namespace="
    url = f"{url_of(store)}{separator}{uuid.uuid4().hex}"
    return [cluster.connect(url) for _ in range(CONNECTIONS)]


async def chain(store: str, waiters: int, held_s: float) -> dict[str, float]:
    """Return microseconds and requests of a hand-over, and what a round trip and a wake-up take here."""
    jobs = connections(store)
    locks = [connection.lock("a", ttl=30) for connection in jobs]
    round_trip = await transaction(jobs[0], held_s)
    hold = await locks[0].async_acquire()
    assert hold is not None

    granted: list[float] = []
    released: list[float] = []

    async def serve(lock: Any) -> None:
        async with lock:
            granted.append(time.perf_counter())
            if held_s:
                await asyncio.sleep(held_s)
            released.append(time.perf_counter())

    tasks = [asyncio.create_task(serve(locks[number % CONNECTIONS])) for number in range(waiters)]
    while locks[0].statistics()["waiting"] < waiters:
        await asyncio.sleep(0.05)
    before = sum(connection.statistics()["requests"] for connection in jobs)
    released.append(time.perf_counter())
    await hold.async_release()
    await asyncio.gather(*tasks)
    took = sum(to - begin for begin, to in zip(released, granted, strict=False))
    requests = sum(connection.statistics()["requests"] for connection in jobs) - before
    for connection in jobs:
        connection.close()
    hand_over = took / waiters * 1e6
    return {"hand_over_us": hand_over, "requests": requests / waiters, "round_trip_us": round_trip}


async def transaction(jobs: Any, pause_s: float, times: int = 100) -> float:
    """Return the microseconds of one transaction of the store, over the same connection and from a task.

    It is an uncontended acquire: a release may be less than a transaction that waits for the disk. A pause before each
    lets processors fall asleep as far as they do while a lock is held for that time.
    """
    lock = jobs.lock("another", ttl=30)
    async with lock:
        pass
    took = 0.0
    for _ in range(times):
        if pause_s:
            await asyncio.sleep(pause_s)
        begin = time.perf_counter()
        hold = await lock.async_acquire()
        took += time.perf_counter() - begin
        await hold.async_release()
    return took / times * 1e6


def measure(store: str, waiters: int, held_s: float = 0.0) -> dict[str, float]:
    """Measure one chain."""
    return asyncio.run(chain(store, waiters, held_s))
