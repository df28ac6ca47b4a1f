"""Cancellations of a task that acquires a condition's lock again: it keeps its place, and has the lock in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec

import pytest

import unsnarl
from tests.conftest import Programs

WITHIN_ANYIO = """
import anyio, asyncio, unsnarl
from collections import Counter

turns = Counter()

class Loop(asyncio.SelectorEventLoop):
    def call_soon(self, callback, *args, **kwargs):
        turns[getattr(callback, "__qualname__", "")] += 1
        return super().call_soon(callback, *args, **kwargs)

async def main():
    condition = unsnarl.Condition(unsnarl.{lock}())
    order, left = [], anyio.Event()

    async def wait():
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            try:
                async with condition:
                    try:
                        await condition.async_wait()
                    finally:
                        order.append("waiter")
            finally:
                left.set()

    async def follow():
        async with condition:
            order.append("follower")

    scopes = []
    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        while not condition.waiting:
            await asyncio.sleep(0)
        async with condition:
            scopes[0].cancel()
            while not condition.lock.waiting:
                await asyncio.sleep(0)
            group.start_soon(follow)
            turns.clear()
            for _ in range(100):
                await asyncio.sleep(0)
            repeated = sum(count for name, count in turns.items() if "cancel" in name)
            print(condition.lock.waiting, "spins" if repeated > 10 else "waits")
        await left.wait()
    print(order, scopes[0].cancelled_caught, condition.locked())

anyio.run(main, backend="asyncio", backend_options={{"loop_factory": Loop}})
"""


@pytest.mark.skipif(find_spec("anyio") is None, reason="anyio is not installed")
@pytest.mark.parametrize("lock", ["Lock", "RLock"])
def test_a_cancelled_waiter_within_anyio_waits_for_the_lock_in_its_place(programs: Programs, lock: str) -> None:
    outcome = programs.python(programs.write("anyio_scope.py", WITHIN_ANYIO.format(lock=lock)))
    expected = b"2 waits\n['waiter', 'follower'] True False\n"
    assert (outcome.status, outcome.stdout) == (0, expected), outcome.complaint


async def until(is_so: Callable[[], object]) -> None:
    """Let others run until something is so."""
    while not is_so():
        await asyncio.sleep(0)


@pytest.mark.parametrize("make", [unsnarl.Lock, unsnarl.RLock])
def test_a_task_that_is_cancelled_repeatedly_keeps_its_place(make: type[unsnarl.Lock | unsnarl.RLock]) -> None:
    async def main() -> list[str]:
        condition, order = unsnarl.Condition(make()), list[str]()

        async def wait() -> None:
            async with condition:
                try:
                    await condition.async_wait()
                finally:
                    order.append("waiter")

        async def follow() -> None:
            async with condition:
                order.append("follower")

        waiter = asyncio.ensure_future(wait())
        await until(lambda: condition.waiting)
        async with condition:
            waiter.cancel()
            await until(lambda: condition.lock.waiting)
            follower = asyncio.ensure_future(follow())
            for _ in range(5):
                waiter.cancel()
                for _ in range(3):
                    await asyncio.sleep(0)
            assert condition.lock.waiting == 2
        await asyncio.gather(waiter, follower, return_exceptions=True)
        assert waiter.cancelled()
        assert not condition.locked()
        return order

    assert asyncio.run(asyncio.wait_for(main(), 60)) == ["waiter", "follower"]


def test_a_task_that_is_cancelled_after_it_was_handed_the_lock_has_it() -> None:
    async def main() -> None:
        condition = unsnarl.Condition(unsnarl.RLock())

        async def wait() -> int:
            async with condition, condition:
                try:
                    await condition.async_wait()
                finally:
                    depths.append(condition.lock._async_depth())
            return 0

        depths: list[int] = []
        waiter = asyncio.ensure_future(wait())
        await until(lambda: condition.waiting)
        async with condition:
            waiter.cancel()
            await until(lambda: condition.lock.waiting)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        assert waiter.cancelled()
        assert depths == [2]
        assert not condition.locked()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_subclass_waits_its_own_way_until_a_predicate_holds() -> None:
    class Counting(unsnarl.Condition):
        waits = 0

        def async_wait(self, timeout: float | None = None):  # type: ignore[no-untyped-def]
            self.waits += 1
            return super().async_wait(timeout)

    async def main() -> None:
        condition, seen = Counting(), iter([False, False, True])
        async with condition:
            task = asyncio.ensure_future(notify(condition))
            assert await condition.async_wait_for(lambda: next(seen), timeout=60)
            assert await condition
        await task
        assert condition.waits == 3

    async def notify(condition: unsnarl.Condition) -> None:
        for _ in range(3):
            await until(lambda: condition.waiting)
            async with condition:
                condition.notify()

    asyncio.run(asyncio.wait_for(main(), 60))
