"""The promises of the primitives between processes to tasks, as scenarios with real processes.

    python -m tests.contract.process_task_scenarios METHOD [NAME]...

Invariant: where the loop does not matter, a scenario runs in asyncio and, where that is installed, in trio.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from tests.contract.crew import (
    TIMEOUT_S,
    echo,
    hold,
    hold_side,
    join,
    kill,
    meet,
    perform,
    started,
    wait_at,
)
from unsnarl import Full, ipc


def tasks_wait(context: Any) -> None:
    lock, go, event = context.Lock(), context.Event(), context.Event()
    lock.acquire()
    processes = started(context, 1, _release_soon, lock, go)

    async def main() -> None:
        assert await lock.async_acquire(timeout=0.01) is False
        assert await event.async_wait(0.01) is False
        waiter = asyncio.ensure_future(lock.async_acquire())
        await asyncio.sleep(0)
        go.set()  # the loop runs on
        assert await asyncio.wait_for(waiter, TIMEOUT_S)
        lock.async_release()
        async with lock:
            pass
        event.set()
        assert await event.async_wait(TIMEOUT_S)

    asyncio.run(main())
    join(processes)


def _loops() -> list[Callable[[Any], Any]]:
    """Return the functions that run a coroutine: asyncio's, and trio's where it is installed."""
    try:
        import trio
    except ImportError:
        print("without trio, which is not installed")
        return [asyncio.run]
    in_trio: Any = trio.run
    return [asyncio.run, lambda main: in_trio(_itself, main)]


async def _itself(awaitable: Any) -> Any:
    return await awaitable


def _answer(condition: Any, value: Any) -> None:
    for number in (1, 3):
        with condition:
            assert condition.wait_for(lambda number=number: value.value == number, TIMEOUT_S)
            value.value += 1
            condition.notify_all()


async def _converse(condition: Any, value: Any) -> None:
    for number in (0, 2):
        async with condition:
            value.value = number + 1
            condition.notify_all()
            assert await condition.async_wait_for(lambda number=number: value.value == number + 2, TIMEOUT_S)
            assert condition.locked()
    async with condition:
        assert await condition.async_wait(0.01) is False
        assert await condition.async_wait_for(lambda: False, 0.01) is False
    assert not condition.locked()


def condition_is_awaited(context: Any) -> None:
    for run in _loops():
        for condition in (context.Condition(), context.Condition(context.Lock())):
            value = context.RawValue("i")
            processes = started(context, 1, _answer, condition, value)
            run(_converse(condition, value))
            join(processes)


def condition_gives_way_to_tasks(context: Any) -> None:
    condition = context.Condition()
    order: list[str] = []

    async def waiter() -> None:
        async with condition, condition:
            order.append("waits")
            assert await condition.async_wait(TIMEOUT_S)
            order.append("notified")

    async def notifier() -> None:
        async with condition:
            order.append("notifies")
            condition.notify()

    async def main() -> None:
        first = asyncio.ensure_future(waiter())
        await asyncio.sleep(0)
        await asyncio.wait_for(notifier(), TIMEOUT_S)
        await asyncio.wait_for(first, TIMEOUT_S)

    asyncio.run(main())
    assert order == ["waits", "notifies", "notified"]
    assert not condition.locked()


def barrier_is_awaited(context: Any) -> None:
    for run in _loops():
        barrier, places = context.Barrier(3), context.Queue()
        processes = started(context, 2, meet, barrier, places, 5)

        async def arrive(barrier: Any = barrier) -> list[int]:
            return [await barrier.async_wait(TIMEOUT_S) for _ in range(5)]

        got = run(arrive())
        join(processes)
        assert sorted([places.get(timeout=TIMEOUT_S) for _ in range(10)] + got) == [0] * 5 + [1] * 5 + [2] * 5


def barrier_breaks_for_tasks(context: Any) -> None:
    from threading import BrokenBarrierError

    barrier = context.Barrier(3)
    (process,) = started(context, 1, wait_at, barrier)
    while barrier.n_waiting != 1:
        os.sched_yield()
    kill(process)

    async def meet() -> None:
        try:
            await barrier.async_wait(TIMEOUT_S)
        except BrokenBarrierError:
            return
        raise AssertionError("met the dead")

    asyncio.run(meet())


def queue_is_awaited(context: Any) -> None:
    for run in _loops():
        queue, answers = context.Queue(1), context.Queue()

        async def talk(queue: Any = queue, answers: Any = answers) -> None:
            await queue.async_put("one", TIMEOUT_S)
            try:
                await queue.async_put("two many", 0.01)
            except Full:
                pass
            else:
                raise AssertionError("more than maxsize")
            processes = started(context, 1, echo, queue, answers)
            assert await answers.async_get(TIMEOUT_S) == "one"
            await answers.async_put("without a bound")
            assert await answers.async_get(TIMEOUT_S) == "without a bound"
            join(processes)

        run(talk())


def task_is_told_of_a_death(context: Any) -> None:
    rw = ipc.RWLock()
    for lock, entered in ((context.Lock(), None), (context.RLock(), None), (rw, rw.writer)):
        ready = context.Event()
        arguments = ("writer", lock, ready) if entered else (lock, ready)
        (process,) = started(context, 1, hold_side if entered else hold, *arguments)
        assert ready.wait(TIMEOUT_S)
        kill(process)

        async def repair(lock: Any = lock, entered: Any = entered or lock) -> None:
            try:
                async with entered:
                    raise AssertionError("async with ran its block")
            except ipc.OwnerDied:
                assert not lock.locked()
            try:
                await entered.async_acquire(TIMEOUT_S)
            except ipc.OwnerDied:
                lock.make_consistent()
            entered.async_release()
            async with entered:
                assert lock.locked()

        asyncio.run(repair())


def _release_soon(lock: Any, go: Any) -> None:
    assert go.wait(TIMEOUT_S)
    lock.release()


SCENARIOS = [
    tasks_wait, condition_is_awaited, condition_gives_way_to_tasks, barrier_is_awaited, barrier_breaks_for_tasks,
    queue_is_awaited, task_is_told_of_a_death,
]  # fmt: skip


if __name__ == "__main__":
    perform(SCENARIOS, ["tasks_wait", "barrier_is_awaited"])
