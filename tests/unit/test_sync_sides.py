"""Limiters without a limit, latches in tasks, and both sides of a read/write lock, under all their names."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

import unsnarl

LONG_S = 30


def test_a_limiter_without_a_limit() -> None:
    limiter = unsnarl.CapacityLimiter(math.inf)
    assert (limiter.total_tokens, limiter.available_tokens) == (math.inf, math.inf)
    with limiter:
        assert (limiter.borrowed_tokens, limiter.available_tokens) == (1, math.inf)
        limiter.total_tokens = 3
        assert (limiter.total_tokens, limiter.available_tokens) == (3, 2)
        limiter.total_tokens = math.inf
    assert limiter.statistics()["total_tokens"] == math.inf
    for wrong in (1.5, math.nan, -math.inf, "1", None):
        with pytest.raises(TypeError):
            unsnarl.CapacityLimiter(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=">= 0"):
        unsnarl.CapacityLimiter(-1)


def test_a_limiter_takes_the_arguments_of_a_lock() -> None:
    limiter = unsnarl.CapacityLimiter(1)
    calls: list[tuple[Any, ...]] = [(), (1,), (True, -1), (True, None), (0,), (False, None)]
    for arguments in calls:
        assert limiter.acquire(*arguments)
        limiter.release()
    with pytest.raises(ValueError, match="non-negative"):
        limiter.acquire(timeout=-2)
    full = unsnarl.CapacityLimiter(0)
    assert not full.acquire(0)  # type: ignore[arg-type]
    assert not full.acquire(timeout=0)


def test_tasks_arrive_at_a_latch_and_wait() -> None:
    async def main() -> list[Any]:
        latch = unsnarl.Latch(3)
        unused = latch.async_arrive_and_wait()
        assert latch.value == 3
        unused.close()
        tasks = [asyncio.create_task(latch.async_arrive_and_wait(LONG_S)) for _ in range(2)]
        thread = threading.Thread(target=latch.arrive_and_wait, args=(LONG_S,), daemon=True)
        thread.start()
        outcomes = await asyncio.gather(*tasks)
        thread.join(LONG_S)
        with pytest.raises(ValueError, match="negative"):
            await latch.async_arrive_and_wait()
        assert not await unsnarl.Latch(2).async_arrive_and_wait(timeout=0)
        return [*outcomes, latch.value]

    assert asyncio.run(asyncio.wait_for(main(), LONG_S)) == [True, True, 0]


def test_a_cancelled_party_has_arrived() -> None:
    async def main() -> int:
        latch = unsnarl.Latch(2)
        task = asyncio.create_task(latch.async_arrive_and_wait())
        while not latch.waiting:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert latch.waiting == 0
        return latch.value

    assert asyncio.run(asyncio.wait_for(main(), LONG_S)) == 1


def test_each_side_counts_its_waiters() -> None:
    lock = unsnarl.RWLock()

    async def main() -> None:
        assert lock.writer.green_acquire(timeout=LONG_S)
        calls = [lock.reader.async_acquire(), lock.writer.async_acquire(), lock.reader.async_acquire()]
        tasks = [asyncio.ensure_future(call) for call in calls]
        while lock.waiting < len(tasks):
            await asyncio.sleep(0)
        assert (lock.reader.waiting, lock.writer.waiting) == (2, 1)
        assert lock.reader.statistics() == {"locked": False, "waiting": 2}
        assert lock.writer.statistics() == {"locked": True, "waiting": 1}
        assert not lock.reader.green_acquire(blocking=False)
        lock.writer.green_release()
        await tasks[0]
        lock.reader.green_release()
        await tasks[1]
        assert (lock.reader.waiting, lock.writer.waiting) == (1, 0)
        lock.writer.release()
        await tasks[2]
        lock.reader.release()

    asyncio.run(asyncio.wait_for(main(), LONG_S))
    assert not lock.locked()
