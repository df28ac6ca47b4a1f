"""Many items in one call, put and got by tasks.

Invariant: as in the scenarios: states and orders are asserted, never times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import unsnarl
from tests.contract.playbook import scenario

KINDS: list[Callable[[int], Any]] = [unsnarl.Queue, unsnarl.PriorityQueue]


@scenario
async def async_batches_keep_order(world: Any) -> None:
    """A batch that does not fit is put in parts."""
    for make in KINDS:
        queue = make(3)
        got: list[int] = []

        async def produce(queue: Any = queue) -> None:
            await queue.async_put_many(range(25))
            await queue.async_put_many(range(25, 50), timeout=60)
            queue.shutdown()

        async def consume(queue: Any = queue, got: list[int] = got) -> None:
            while True:
                try:
                    items = await queue.async_get_many(10)
                except unsnarl.ShutDown:
                    return
                assert 1 <= len(items) <= 3
                got.extend(items)

        await world.together(produce, consume)
        assert got == list(range(50))
        assert queue.unfinished_tasks == 50
        assert (queue.waiting, await queue.async_get_many(0)) == (0, [])


@scenario
async def async_batches_lose_nothing_on_cancel(world: Any) -> None:
    for make in KINDS:
        queue = make(2)
        await world.cancelled(lambda queue=queue: queue.async_get_many(5))
        assert queue.waiting == 0
        put: list[int] = []

        async def fill(queue: Any = queue, put: list[int] = put) -> None:
            try:
                await queue.async_put_many(range(5))
            except BaseException as error:
                put.append(getattr(error, "put", -1))
                raise

        await world.cancelled(fill)
        assert (put, queue.waiting, queue.unfinished_tasks) == ([2], 0, 2)
        assert await queue.async_get_many(5) == [0, 1]


async def error_of(awaitable: Any) -> BaseException | None:
    """Await it, and return the exception that it raises."""
    try:
        await awaitable
    except (unsnarl.Empty, unsnarl.Full, unsnarl.ShutDown) as error:
        return error
    return None


@scenario
async def async_batches_end_in_time(world: Any) -> None:
    for make in KINDS:
        queue = make(2)
        for timeout in (0, 0.01):
            assert isinstance(await error_of(queue.async_get_many(2, timeout=timeout)), unsnarl.Empty)
            full = await error_of(queue.async_put_many([1, 2, 3], timeout=timeout))
            assert isinstance(full, unsnarl.Full)
            assert full.args == (2,)
            assert queue.clear() == 2
        await queue.async_put(0)
        queue.shutdown()
        shut_down = await error_of(queue.async_put_many([1]))
        assert isinstance(shut_down, unsnarl.ShutDown)
        assert shut_down.args == (0,)
        assert await queue.async_get_many(3) == [0]
    await world.wait_until_idle()


@scenario
async def async_batches_and_threads(world: Any) -> None:
    """A thread's batches and a task's on the same queues."""
    there: unsnarl.Queue[int] = unsnarl.Queue(7)
    back: unsnarl.Queue[int] = unsnarl.Queue(5)

    def work() -> None:
        for _ in range(3):
            missing = 100
            while missing:
                items = there.get_many(missing)
                back.put_many(items)
                missing -= len(items)
        back.shutdown()

    thread = threading.Thread(target=work)
    thread.start()
    got: list[int] = []

    async def produce() -> None:
        for start in range(0, 300, 50):
            await there.async_put_many(range(start, start + 50))

    async def consume() -> None:
        while len(got) < 300:
            got.extend(await back.async_get_many(20))

    await world.together(produce, consume)
    thread.join(60)
    assert got == list(range(300))
