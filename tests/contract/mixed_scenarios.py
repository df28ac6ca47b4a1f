"""Threads and two event loops on one object, while a third loop waits for them.

Invariant: an exception of any party is raised in the task that waits for all.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import unsnarl
from tests.contract.playbook import LOCKS_AND_SIDES, scenario


class Company:
    """Two plain threads, and two event loops in threads of their own, that run the same scenario."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.errors: list[BaseException] = []

    async def play(self, thread: Callable[[], None], task: Callable[[Any], Any]) -> None:
        """Run all parties to their ends while this task waits."""
        absent = unsnarl.CountdownEvent(4)

        def guarded(part: Callable[[], None]) -> None:
            try:
                part()
            except BaseException as error:  # noqa: BLE001 - raised again in the task that waits
                self.errors.append(error)
            finally:
                absent.down()

        def in_a_loop() -> None:
            # A thread may inherit the context of its starter, in which anyio sees the loop that runs there.
            contextvars.Context().run(type(self.world)().run, task)

        threads = [threading.Thread(target=guarded, args=(part,)) for part in (thread, thread, in_a_loop, in_a_loop)]
        for each in threads:
            each.start()
        assert await absent.async_wait(timeout=60), "somebody hangs"
        for each in threads:
            each.join(60)
        if self.errors:
            raise self.errors[0]


@scenario
async def async_threads_and_two_loops_exclude_each_other(world: Any) -> None:
    for make in LOCKS_AND_SIDES:
        lock = make()
        inside = entered = 0

        def visit(step: int) -> None:
            nonlocal inside, entered
            inside += step
            entered += step > 0
            assert inside == max(step, 0)

        def thread() -> None:
            for _ in range(20):
                with lock:
                    visit(1)
                    unsnarl.Event().wait(0.0001)
                    visit(-1)

        async def task(there: Any) -> None:
            async def party() -> None:
                for _ in range(10):
                    async with lock:
                        visit(1)
                        await there.wait_until_idle()
                        visit(-1)

            await there.together(party, party)

        await Company(world).play(thread, task)
        assert entered == 80, make


@scenario
async def async_threads_and_two_loops_share_queues(world: Any) -> None:
    for make in (unsnarl.Queue, unsnarl.LifoQueue, unsnarl.PriorityQueue):
        queue: Any = make(3)
        back = unsnarl.SimpleQueue[int]()

        def thread() -> None:
            for number in range(100):
                queue.put(number)

        async def task(_there: Any) -> None:
            for _ in range(100):
                back.put(await queue.async_get(timeout=60))
                queue.task_done()

        await Company(world).play(thread, task)
        await queue.async_join(timeout=60)
        assert sorted(back.get_many(1000)) == sorted([*range(100)] * 2)


@scenario
async def async_threads_and_two_loops_meet(world: Any) -> None:
    barrier, condition, opened = unsnarl.Barrier(4), unsnarl.Condition(), unsnarl.Event()
    indices: list[int] = []
    generation = arrived = 0

    def step() -> bool:
        """The last of four opens the next generation."""
        nonlocal arrived, generation
        arrived += 1
        if arrived == 4:
            arrived, generation = 0, generation + 1
            condition.notify_all()
        return arrived == 0

    def thread() -> None:
        for number in range(10):
            indices.append(barrier.wait(60))
            with condition:
                assert step() or condition.wait_for(lambda: generation > number, timeout=60)
        opened.set()

    async def task(_there: Any) -> None:
        for number in range(10):
            indices.append(await barrier.async_wait(60))
            async with condition:
                assert step() or await condition.async_wait_for(lambda: generation > number, timeout=60)
        assert await opened.async_wait(60)

    await Company(world).play(thread, task)
    assert sorted(indices) == sorted([*range(4)] * 10)
