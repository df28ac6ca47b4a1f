"""A priority queue compares, fails and counts exactly as the standard library's does.

Invariant: each test does the same with both queues, or states what ours must not lose.
"""

from __future__ import annotations

import asyncio
import queue
import random
import threading
import time
import weakref
from typing import Any

import pytest

import unsnarl


class Watched:
    """An item that records the items it was compared with."""

    def __init__(self, value: int, seen: list[tuple[int, int]]) -> None:
        self.value = value
        self.seen = seen

    def __lt__(self, other: Watched) -> bool:
        self.seen.append((self.value, other.value))
        return self.value < other.value


def comparisons(make: Any, values: list[int | None]) -> list[tuple[int, int]]:
    """Put each value, get one for each None; return the comparisons and the results."""
    seen: list[tuple[int, int]] = []
    line = make()
    for value in values:
        if value is None:
            if line.qsize():
                seen.append((line.get().value, -1))
        else:
            line.put(Watched(value, seen))
    return seen


@pytest.mark.parametrize("seed", range(5))
def test_it_compares_as_often_and_in_the_same_order(seed: int) -> None:
    drawn = random.Random(seed)
    values = [drawn.choice([None, drawn.randrange(20)]) for _ in range(300)]
    assert comparisons(unsnarl.PriorityQueue, values) == comparisons(queue.PriorityQueue, values)


@pytest.mark.parametrize("make", [queue.PriorityQueue, unsnarl.PriorityQueue])
def test_an_item_that_cannot_be_compared_is_in_the_heap_all_the_same(make: Any) -> None:
    line = make()
    line.put(1)
    with pytest.raises(TypeError, match="not supported between"):
        line.put("text")
    assert (line.qsize(), line.unfinished_tasks) == (2, 1)
    assert line.get(timeout=1) == 1
    assert line.get(timeout=1) == "text"
    with pytest.raises(queue.Empty):
        line.get_nowait()


@pytest.mark.parametrize("make", [queue.PriorityQueue, unsnarl.PriorityQueue])
def test_an_item_put_by_the_hook_is_counted(make: Any) -> None:
    line = make(3)
    for number in (3, 2):
        line.put(number)
    line._put(1)
    assert line.get() == 1
    line._put(0)
    assert [line.get(timeout=1) for _ in range(3)] == [0, 2, 3]


@pytest.mark.parametrize("make", [queue.PriorityQueue, unsnarl.PriorityQueue])
def test_a_full_one_and_one_that_is_shut_down_take_nothing(make: Any) -> None:
    line = make(1)
    line.put(1)
    with pytest.raises(queue.Full):
        line.put_nowait(0)
    if hasattr(line, "shutdown"):
        line.shutdown()
        with pytest.raises(unsnarl.ShutDown):
            line.put(0)
    assert line.get() == 1


@pytest.mark.parametrize("make", [queue.PriorityQueue, unsnarl.PriorityQueue])
def test_it_keeps_no_reference_to_an_item_that_was_got(make: Any) -> None:
    line = make()
    item = Watched(1, [])
    watcher = weakref.ref(item)
    line.put(item)
    assert line.get() is item
    del item
    assert watcher() is None


class Obstacle:
    """An obstacle for comparisons: once it is up, they wait until it is released, and fail."""

    def __init__(self) -> None:
        self.is_up = False
        self.reached, self.told = threading.Event(), threading.Event()

    def item(self) -> Obstructed:
        return Obstructed(self)


class Obstructed:
    """An item that equals any other, unless its obstacle is up."""

    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle

    def __lt__(self, other: object) -> bool:
        if self.obstacle.is_up:
            self.obstacle.reached.set()
            self.obstacle.told.wait()
            raise TypeError("it cannot be compared")
        return False


async def outcomes_beside(obstacle: Obstacle, act: Any, wait: Any) -> tuple[str, object]:
    """Let a thread fail in ``act`` while a task waits for what that failure releases."""
    obstacle.is_up = True
    thread = asyncio.create_task(asyncio.to_thread(outcome_of, act))
    await asyncio.to_thread(obstacle.reached.wait)
    waiter = asyncio.create_task(wait())
    await asyncio.sleep(0)  # the task runs, and waits
    assert not waiter.done()
    obstacle.told.set()
    return await asyncio.wait_for(thread, 30), await asyncio.wait_for(waiter, 30)


def outcome_of(act: Any) -> str:
    with pytest.raises(TypeError) as raised:
        act()
    return str(raised.value)


def test_a_task_that_waits_for_all_to_be_done_is_woken_by_a_put_that_fails() -> None:
    line: unsnarl.PriorityQueue[Obstructed] = unsnarl.PriorityQueue()
    obstacle = Obstacle()
    line.put(obstacle.item())
    line.task_done()
    item = obstacle.item()
    found = asyncio.run(outcomes_beside(obstacle, lambda: line.put(item), line.async_join))
    assert found == ("it cannot be compared", True)
    assert (line.qsize(), line.unfinished_tasks) == (2, 0)


@pytest.mark.parametrize("way", ["put", "get"])
def test_a_task_that_waits_for_the_mutex_has_it_after_a_failure(way: str) -> None:
    line: unsnarl.PriorityQueue[Obstructed] = unsnarl.PriorityQueue()
    obstacle = Obstacle()
    for _ in range(4):
        line.put(obstacle.item())
    item = obstacle.item()
    act = line.get if way == "get" else lambda: line.put(item)

    async def take_mutex() -> bool:
        # Read only now: a queue whose mutex was read does not take the fast path.
        return await line.mutex.async_acquire()

    found = asyncio.run(outcomes_beside(obstacle, act, take_mutex))
    assert found == ("it cannot be compared", True)
    line.mutex.release()


def test_nothing_is_lost_while_comparisons_let_others_run() -> None:
    class Slow(Watched):
        def __lt__(self, other: Watched) -> bool:
            time.sleep(0)
            return self.value < other.value

    line: unsnarl.PriorityQueue[Slow] = unsnarl.PriorityQueue(8)
    got: list[int] = []

    def produce(first: int) -> None:
        for value in range(first, first + 100):
            line.put(Slow(value, []))

    def consume() -> None:
        for _ in range(100):
            got.append(line.get().value)
            line.task_done()

    threads = [threading.Thread(target=produce, args=(first,)) for first in (0, 100, 200)]
    threads += [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(300))
    assert (line.qsize(), line.unfinished_tasks) == (0, 0)
