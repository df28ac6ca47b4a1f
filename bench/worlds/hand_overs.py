"""Hand-overs between two sides that `bench.primitives` has no scene for, each as operations per second.

Ping-pong over a Lock and over SimpleQueues, SimpleQueues between one and eight pairs, and Queues of which one or both
sides are an event loop. The standard library's side of the asynchronous ones is what a user would take there:
``queue.Queue`` used from the loop where that cannot block it, `asyncio.Queue` between tasks of one loop.

Invariant: both libraries run the same function, for a fixed number of operations.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import unsnarl
from bench.worlds.programs.counted import timed, together

Wait = Callable[[], object]
Pass = Callable[[], object]


def _ping_pong(first: Wait, first_lets: Pass, second: Wait, second_lets: Pass, count: int = 5000) -> float:
    """Round trips of two threads, each of which waits and then lets the other one go on."""

    def player(wait: Wait, let_other_go_on: Pass) -> Callable[[], None]:
        def play() -> None:
            for _ in range(count):
                wait()
                let_other_go_on()

        return play

    return count / together([player(first, first_lets), player(second, second_lets)])


def lock_ping_pong(library: Any) -> float:
    """Round trips of two threads over two locks, each released by the other thread."""
    one, other = library.Lock(), library.Lock()
    other.acquire()
    return _ping_pong(one.acquire, other.release, other.acquire, one.release)


def simple_queue_ping_pong(library: Any) -> float:
    """Round trips of two threads over two SimpleQueues."""
    one, other = library.SimpleQueue(), library.SimpleQueue()
    one.put(None)
    return _ping_pong(one.get, partial(other.put, None), other.get, partial(one.put, None))


def _through(shared: Any, sides: int, count: int) -> float:
    def produce() -> None:
        for number in range(count):
            shared.put(number)

    def consume() -> None:
        for _ in range(count):
            shared.get()

    return sides * count / together([produce] * sides + [consume] * sides)


def simple_queue_1_to_1(library: Any) -> float:
    """Items per second through a SimpleQueue, one producer and one consumer."""
    return _through(library.SimpleQueue(), 1, 50_000)


def simple_queue_8_to_8(library: Any) -> float:
    """Items per second through a SimpleQueue, eight producers and eight consumers."""
    return _through(library.SimpleQueue(), 8, 10_000)


def _loop_to_thread(library: Any, size: int, count: int = 30_000) -> float:
    shared = library.Queue(size)

    def consume() -> None:
        for _ in range(count):
            shared.get()

    async def produce() -> None:
        for number in range(count):
            if library is unsnarl:
                await shared.async_put(number)
            else:
                shared.put(number)  # blocks the loop where the queue is full: what such programs do

    return count / together([consume, lambda: asyncio.run(produce())])


def loop_to_thread(library: Any) -> float:
    """Items per second from a task to a thread through an unbounded Queue."""
    return _loop_to_thread(library, 0)


def loop_to_thread_bounded(library: Any) -> float:
    """Items per second from a task to a thread through a Queue(100)."""
    return _loop_to_thread(library, 100)


def tasks_of_one_loop(library: Any, count: int = 30_000) -> float:
    """Items per second between two tasks of one loop through a queue of 100."""

    async def main() -> float:
        put, get = _task_queue(library)

        async def produce() -> None:
            for number in range(count):
                await put(number)

        async def consume() -> None:
            for _ in range(count):
                await get()

        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.gather(produce(), consume())
        return loop.time() - began_s

    return count / asyncio.run(main())


def _task_queue(library: Any) -> tuple[Callable[[int], Awaitable[None]], Callable[[], Awaitable[int]]]:
    if library is unsnarl:
        ours: unsnarl.Queue[int] = unsnarl.Queue(100)
        return ours.async_put, ours.async_get
    theirs: asyncio.Queue[int] = asyncio.Queue(100)
    return theirs.put, theirs.get


def producer_alone(library: Any, count: int = 200_000) -> float:
    """Puts and gets per second of one thread on a SimpleQueue."""
    shared = library.SimpleQueue()

    def work() -> None:
        for number in range(count):
            shared.put(number)
            shared.get()

    return count / timed(work)


HAND_OVERS: dict[str, Callable[[Any], float]] = {
    "Lock ping-pong": lock_ping_pong,
    "SimpleQueue ping-pong": simple_queue_ping_pong,
    "SimpleQueue, 1 to 1": simple_queue_1_to_1,
    "SimpleQueue, 8 to 8": simple_queue_8_to_8,
    "SimpleQueue, one thread": producer_alone,
    "loop puts, thread gets: Queue": loop_to_thread,
    "loop puts, thread gets: Queue(100)": loop_to_thread_bounded,
    "two tasks of one loop, Queue(100)": tasks_of_one_loop,
}


def standard() -> Any:
    """Return the standard library's classes under one roof."""
    from types import SimpleNamespace

    return SimpleNamespace(Lock=threading.Lock, SimpleQueue=queue.SimpleQueue, Queue=queue.Queue)
