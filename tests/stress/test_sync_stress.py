"""The primitives under a mixed load, for a limited time: threads, two event loops, timeouts, cancellations.

Run by ``scripts/stress``. Each test draws its parties' actions from a seed that it prints, and asserts at the end
what must hold in every interleaving: nothing lost, nothing doubled, no party left waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import unsnarl

SECONDS = 4.0
HANGS_AFTER_S = 60.0
THREADS, TASKS = 4, 6

Call = Callable[[random.Random], None]
AsyncCall = Callable[[random.Random], Coroutine[Any, Any, None]]


class Rage:
    """Threads and the tasks of two loops that call repeatedly; tasks are cancelled at random."""

    def __init__(self, seed: int, call: Call, async_call: AsyncCall) -> None:
        self.seed, self.call, self.async_call = seed, call, async_call
        self.until = time.monotonic() + SECONDS
        self.errors: list[BaseException] = []

    def goes_on(self) -> bool:
        return time.monotonic() < self.until and not self.errors

    def thread(self, number: int) -> None:
        lots = random.Random(f"{self.seed} thread {number}")
        while self.goes_on():
            self.call(lots)

    def loop(self, number: int) -> None:
        async def tasks() -> None:
            lots = (random.Random(f"{self.seed} task {number} {n}") for n in range(TASKS))
            await asyncio.gather(*map(self.task, lots))

        asyncio.run(tasks())

    async def task(self, lots: random.Random) -> None:
        while self.goes_on():
            inner = asyncio.ensure_future(self.async_call(lots))
            if lots.random() < 0.3:
                for _ in range(lots.randrange(4)):
                    await asyncio.sleep(0)
                inner.cancel()
            await asyncio.gather(inner, return_exceptions=True)
            if not inner.cancelled() and (error := inner.exception()) is not None:
                raise error
            await asyncio.sleep(0)

    def guarded(self, part: Callable[[int], None], number: int) -> None:
        try:
            part(number)
        except BaseException as error:  # noqa: BLE001 - raised again by the test
            self.errors.append(error)

    def play(self) -> None:
        print(f"seed {self.seed}")
        parts = [(self.thread, number) for number in range(THREADS)] + [(self.loop, number) for number in range(2)]
        threads = [threading.Thread(target=self.guarded, args=part, daemon=True) for part in parts]
        for each in threads:
            each.start()
        for each in threads:
            each.join(SECONDS + HANGS_AFTER_S)
            if each.is_alive():
                faulthandler.dump_traceback(all_threads=True)
                pytest.fail("a thread hangs")
        if self.errors:
            raise self.errors[0]


LOCKS: dict[str, Callable[[], Any]] = {
    "Lock": unsnarl.Lock,
    "RLock": unsnarl.RLock,
    "Semaphore": unsnarl.Semaphore,
    "CapacityLimiter": unsnarl.CapacityLimiter,
    "RWLock": lambda: unsnarl.RWLock().writer,
}


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_one_inside(name: str, seed: int) -> None:
    lock = LOCKS[name]()
    inside: list[int] = []

    def call(lots: random.Random) -> None:
        if lock.acquire(timeout=lots.choice([0.0, 0.0002, 1.0])):
            inside.append(1)
            assert len(inside) == 1
            if lots.random() < 0.1:
                time.sleep(0)
            inside.pop()
            lock.release()

    async def async_call(lots: random.Random) -> None:
        if await lock.async_acquire(timeout=lots.choice([0.0, 0.0002, None])):
            try:
                inside.append(1)
                assert len(inside) == 1
                if lots.random() < 0.3:
                    await asyncio.sleep(0)
            finally:
                inside.pop()
                released = lock.async_release()
                assert released is None

    Rage(seed, call, async_call).play()
    assert lock.acquire(timeout=0)


class Accounts:
    """The items that went into a queue, and those that came out."""

    PATIENCE = (0.0, 0.0002, 0.01)

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.given, self.taken = Counter[int](), Counter[int]()
        self.numbers = iter(range(10**9))
        self.next_number = threading.Lock()  # an iterator is for one thread, where there is no GIL

    def number(self) -> int:
        with self.next_number:
            return next(self.numbers)

    def call(self, lots: random.Random) -> None:
        timeout = lots.choice(self.PATIENCE)
        with contextlib.suppress(unsnarl.Empty, unsnarl.Full):
            if lots.random() < 0.5:
                number = self.number()
                self.queue.put(number, timeout=timeout)
                self.given[number] += 1
            else:
                self.taken[self.queue.get(timeout=timeout)] += 1

    async def async_call(self, lots: random.Random) -> None:
        timeout = lots.choice(self.PATIENCE)
        with contextlib.suppress(unsnarl.Empty, unsnarl.Full):
            if lots.random() < 0.5:
                number = self.number()
                await self.queue.async_put(number, timeout=timeout)
                self.given[number] += 1
            else:
                self.taken[await self.queue.async_get(timeout=timeout)] += 1


@pytest.mark.parametrize("make", [unsnarl.Queue, unsnarl.LifoQueue, unsnarl.PriorityQueue])
@pytest.mark.parametrize("seed", [1, 2])
def test_items_are_neither_lost_nor_doubled(make: Any, seed: int) -> None:
    accounts = Accounts(make(3))
    Rage(seed, accounts.call, accounts.async_call).play()
    while not accounts.queue.empty():
        accounts.taken[accounts.queue.get_nowait()] += 1
    assert accounts.taken == accounts.given
    assert accounts.queue.waiting == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_condition_leaves_no_waiter_behind(seed: int) -> None:
    condition = unsnarl.Condition()
    tokens = [0]

    def call(lots: random.Random) -> None:
        with condition:
            if lots.random() < 0.6:
                tokens[0] += 1
                condition.notify(lots.randrange(3))
            elif condition.wait_for(lambda: tokens[0] > 0, timeout=lots.choice([0.0, 0.0005, 0.01])):
                tokens[0] -= 1

    async def async_call(lots: random.Random) -> None:
        async with condition:
            if await condition.async_wait_for(lambda: tokens[0] > 0, timeout=lots.choice([0.0, 0.0005, 0.01])):
                tokens[0] -= 1

    Rage(seed, call, async_call).play()
    assert condition.waiting == 0
    assert condition.acquire(timeout=0)
    assert tokens[0] >= 0
