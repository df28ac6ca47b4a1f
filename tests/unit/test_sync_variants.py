"""The primitives that aiologic has under other names, and the arguments that its methods take."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import unsnarl

LONG_S = 30
NAMES = ["BinarySemaphore", "BoundedBinarySemaphore", "RBarrier", "RCapacityLimiter", "REvent", "SimpleLifoQueue"]


def run(call: Any) -> Any:
    return asyncio.run(asyncio.wait_for(call, LONG_S))


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_public(name: str) -> None:
    assert name in unsnarl.__all__
    assert name in unsnarl.sync.__all__
    assert getattr(unsnarl, name) is getattr(unsnarl.sync, name)
    assert getattr(unsnarl, name).__module__ == "unsnarl"


def test_what_can_be_used_again_has_two_names() -> None:
    assert unsnarl.REvent is unsnarl.Event
    assert unsnarl.RBarrier is unsnarl.Barrier


@pytest.mark.parametrize("make", [unsnarl.BinarySemaphore, unsnarl.BoundedBinarySemaphore])
def test_a_binary_semaphore_has_one_permit(make: Any) -> None:
    for wrong in (-1, 2):
        with pytest.raises(ValueError, match="0 or 1"):
            make(wrong)
    semaphore = make(initial_value=0)
    assert (semaphore.value, semaphore.acquire(blocking=False)) == (0, False)
    for release in (semaphore.release, semaphore.green_release, semaphore.async_release):
        release()
        assert semaphore.value == 1
        with pytest.raises(ValueError, match="n must be 1"):
            release(2)
        with semaphore:
            assert semaphore.locked()
        assert semaphore.acquire()


def test_a_release_too_many_is_without_effect_or_an_error() -> None:
    free = unsnarl.BinarySemaphore()
    for release in (free.release, free.green_release, free.async_release):
        release()
        assert free.value == 1
    with free:
        free.release()
    bounded = unsnarl.BoundedBinarySemaphore()
    for release in (bounded.release, bounded.green_release, bounded.async_release):
        with pytest.raises(ValueError, match="too many"):
            release()

    async def leave_what_is_free() -> int:
        async with free:
            free.release()
        return free.value

    assert run(leave_what_is_free()) == 1


def test_a_simple_lifo_queue() -> None:
    line: unsnarl.SimpleLifoQueue[int] = unsnarl.SimpleLifoQueue()
    for number in range(3):
        line.put(number)
    assert [line.get() for _ in range(3)] == [2, 1, 0]
    assert line.maxsize == 0
    with pytest.raises(TypeError):
        unsnarl.SimpleLifoQueue(1)  # type: ignore[call-arg]


def test_a_borrower_borrows_again() -> None:
    limiter = unsnarl.RCapacityLimiter(1)
    with limiter, limiter:
        assert limiter.green_acquire()
        assert (limiter.green_count(), limiter.borrowed_tokens, limiter.green_borrowed()) == (3, 1, True)
        seen: list[Any] = []
        other = threading.Thread(target=lambda: seen.append(limiter.acquire(timeout=0)), daemon=True)
        other.start()
        other.join(LONG_S)
        assert seen == [False]
        limiter.green_release()
    assert (limiter.green_count(), limiter.borrowed_tokens, limiter.green_borrowed()) == (0, 0, False)
    with pytest.raises(RuntimeError, match="holds none"):
        limiter.release()


def test_a_task_borrows_again() -> None:
    async def main() -> None:
        limiter = unsnarl.RCapacityLimiter(1)
        async with limiter:
            assert await limiter.async_acquire(timeout=1)
            assert (limiter.async_count(), limiter.borrowed_tokens, limiter.async_borrowed()) == (2, 1, True)
            waiting = asyncio.create_task(borrow(limiter))
            while not limiter.waiting:
                await asyncio.sleep(0)
            assert not limiter.acquire(blocking=False)  # its thread is another borrower
            limiter.async_release()
            assert limiter.borrowed_tokens == 1
        await has_borrowed.wait()
        assert limiter.borrowed_tokens == 1
        with pytest.raises(RuntimeError, match="holds none"):
            limiter.async_release()
        is_over.set()
        await waiting
        assert limiter.borrowed_tokens == 0

    has_borrowed, is_over = asyncio.Event(), asyncio.Event()

    async def borrow(limiter: unsnarl.RCapacityLimiter) -> None:
        async with limiter:
            has_borrowed.set()
            await is_over.wait()

    run(main())


def test_methods_for_greenlets_and_tasks_take_blocking() -> None:
    async def main() -> None:
        lock, semaphore, limiter = unsnarl.Lock(), unsnarl.Semaphore(1), unsnarl.CapacityLimiter(1)
        for thing in (lock, unsnarl.RLock(), semaphore, unsnarl.RWLock().writer):
            assert await thing.async_acquire(blocking=False)
            assert thing.green_acquire(blocking=False) is False
            thing.async_release()
        async with lock, semaphore:
            assert not await lock.async_acquire(blocking=False)
            assert not await semaphore.async_acquire(blocking=False)
        assert limiter.green_acquire(blocking=False)
        assert not await limiter.async_acquire(blocking=False)
        line: unsnarl.Queue[int] = unsnarl.Queue(1)
        line.green_put(1, blocking=False)
        with pytest.raises(unsnarl.Full):
            line.green_put(2, blocking=False)
        with pytest.raises(unsnarl.Full):
            await line.async_put(2, blocking=False)
        assert line.green_get(blocking=False) == 1
        with pytest.raises(unsnarl.Empty):
            line.green_get(blocking=False)
        with pytest.raises(unsnarl.Empty):
            await line.async_get(blocking=False)

    run(main())


def test_a_flag_has_a_default_and_a_lock_a_count() -> None:
    flag = unsnarl.Flag()
    assert (flag.get(5), flag.get(None), flag.get(default=flag)) == (5, None, flag)
    with pytest.raises(LookupError):
        flag.get()
    flag.set(None)
    assert flag.get(5) is None
    lock = unsnarl.RLock()
    with lock, lock:
        assert lock.count == 2
    assert lock.count == 0


@pytest.mark.parametrize("make", [unsnarl.Semaphore, unsnarl.BoundedSemaphore])
def test_a_semaphore_has_a_most(make: Any) -> None:
    semaphore = make(2, 3)
    semaphore.release()
    with pytest.raises(ValueError, match="too many"):
        semaphore.release()
    assert semaphore.value == 3
    assert "3/3" in repr(semaphore)
    assert make(2, max_value=None).value == 2
    for wrong in (1, -1):
        with pytest.raises(ValueError, match="max_value"):
            make(2, wrong)
