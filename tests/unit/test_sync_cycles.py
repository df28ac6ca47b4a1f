"""Cycles through a primitive are collected: the collector visits, and clears, what a primitive refers to."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import unsnarl
from unsnarl.sync import standard


def barrier_with_a_method() -> Any:
    class Game(unsnarl.Barrier):
        def __init__(self) -> None:
            super().__init__(2, action=self.turn)

        def turn(self) -> None: ...

    return Game()


def patched_barrier_with_a_method() -> Any:
    class Game(standard.Barrier):
        def __init__(self) -> None:
            super().__init__(2, action=self.turn)

        def turn(self) -> None: ...

    return Game()


def barrier_with_a_timeout() -> Any:
    class Seconds(float):
        owner: Any

    seconds = Seconds(1)
    barrier = unsnarl.Barrier(2, None, seconds)
    seconds.owner = barrier
    return barrier


def flag_of_itself() -> Any:
    flag = unsnarl.Flag()
    flag.set(flag)
    return flag


def flag_in_a_tuple() -> Any:
    flag = unsnarl.Flag()
    flag.set((flag,))
    return flag


def once_of_itself() -> Any:
    once: unsnarl.Once[Any] = unsnarl.Once()
    once.call(lambda: once)
    return once


def lock_with_its_side() -> Any:
    class Kept(unsnarl.RWLock):
        def __init__(self) -> None:
            super().__init__()
            self.read, self.write = self.reader, self.writer

    return Kept()


def lock_with_its_side_in_a_slot() -> Any:
    class Kept(unsnarl.RWLock):
        __slots__ = ("read",)

        def __init__(self) -> None:
            super().__init__()
            self.read = self.reader

    return Kept()


def queue_of_itself(make: Any) -> Callable[[], Any]:
    def build() -> Any:
        queue = make()
        queue.put((0, queue))
        return queue

    build.__name__ = make.__name__
    return build


def queue_with_conditions() -> Any:
    queue: unsnarl.Queue[Any] = unsnarl.Queue()
    queue.put(queue.not_full)
    return queue


def queue_with_a_size() -> Any:
    class Size(int):
        owner: Any

    size = Size(3)
    queue: unsnarl.Queue[int] = unsnarl.Queue(size)
    size.owner = queue
    return queue


def queue_of_its_ticket() -> Any:
    queue: unsnarl.Queue[Any] = unsnarl.Queue()
    queue.put(queue.async_get())
    return queue


def condition_of_a_lock_that_knows_it() -> Any:
    class Known(unsnarl.Lock):
        condition: Any

    lock = Known()
    lock.condition = unsnarl.Condition(lock)
    return lock


def semaphore_with_itself() -> Any:
    class Kept(unsnarl.Semaphore):
        def __init__(self) -> None:
            super().__init__()
            self.me = self

    return Kept()


def operation_of_a_limiter() -> Any:
    class Kept(unsnarl.CapacityLimiter):
        call: Any

    limiter = Kept()
    queue: unsnarl.Queue[Any] = unsnarl.Queue()
    limiter.call = queue.async_put_many([limiter])
    return limiter


CYCLES = [
    barrier_with_a_method,
    patched_barrier_with_a_method,
    barrier_with_a_timeout,
    flag_of_itself,
    flag_in_a_tuple,
    once_of_itself,
    lock_with_its_side,
    lock_with_its_side_in_a_slot,
    queue_of_itself(unsnarl.Queue),
    queue_of_itself(unsnarl.LifoQueue),
    queue_of_itself(unsnarl.PriorityQueue),
    queue_of_itself(unsnarl.SimpleQueue),
    queue_of_itself(standard.Queue),
    queue_with_conditions,
    queue_with_a_size,
    queue_of_its_ticket,
    condition_of_a_lock_that_knows_it,
    semaphore_with_itself,
    operation_of_a_limiter,
]


def counted() -> Counter[type]:
    return Counter(type(each) for each in gc.get_objects())


@pytest.mark.parametrize("build", CYCLES, ids=lambda build: build.__name__)
def test_a_cycle_is_collected(build: Callable[[], Any]) -> None:
    gc.collect()
    before = counted()
    thing = build()
    kind, reference = type(thing), weakref.ref(thing)
    del thing
    gc.collect()
    # References are cleared before the collector finds out whether it can end the cycle.
    assert (reference(), counted()[kind]) == (None, before[kind])


def test_a_cycle_of_an_operation_is_collected_whatever_was_before() -> None:
    """The memory of operations is reused: the collector knows later operations too."""
    for _ in range(3):
        test_a_cycle_is_collected(operation_of_a_limiter)


def test_a_flag_keeps_the_first_value_and_gives_up_the_others() -> None:
    class Value: ...

    flag, first, second = unsnarl.Flag(), Value(), Value()
    held = [weakref.ref(first), weakref.ref(second)]
    assert (flag.set(first), flag.set(second), flag.get()) == (True, False, first)
    del first, second
    assert (held[0]() is flag.get(), held[1]()) == (True, None)
    del flag
    assert held[0]() is None
