"""Primitives between threads, and between a thread and an event loop, in operations per second.

Invariant: all libraries run the same function, for a fixed number of operations, in one process, in alternation.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import unsnarl
from bench.primitives.scene import OURS, PEERS, RATE, STANDARD, Scene, libraries


def _together(*functions: Callable[[], Any]) -> float:
    threads = [threading.Thread(target=function) for function in functions]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def ping_pong_condition(library: Any, count: int = 5000) -> float:
    """Round trips of two threads over one Condition."""
    condition, turn = library.Condition(), [0]

    def player(number: int) -> Callable[[], None]:
        def play() -> None:
            for _ in range(count):
                with condition:
                    while turn[0] != number:
                        condition.wait()
                    turn[0] = 1 - number
                    condition.notify()

        return play

    return count / _together(player(0), player(1))


def ping_pong_semaphore(library: Any, count: int = 5000) -> float:
    """Round trips of two threads over two Semaphores."""
    one, other = library.Semaphore(1), library.Semaphore(0)

    def player(mine: Any, theirs: Any) -> Callable[[], None]:
        def play() -> None:
            for _ in range(count):
                mine.acquire()
                theirs.release()

        return play

    return count / _together(player(one, other), player(other, one))


def ping_pong_event(library: Any, count: int = 5000) -> float:
    """Round trips of two threads over two Events."""
    one, other = library.Event(), library.Event()
    one.set()

    def player(mine: Any, theirs: Any) -> Callable[[], None]:
        def play() -> None:
            for _ in range(count):
                mine.wait()
                mine.clear()
                theirs.set()

        return play

    return count / _together(player(one, other), player(other, one))


def ping_pong_queue(library: Any, count: int = 5000) -> float:
    """Round trips of two threads over two Queues."""
    one, other = library.Queue(), library.Queue()
    one.put(None)

    def player(mine: Any, theirs: Any) -> Callable[[], None]:
        def play() -> None:
            for _ in range(count):
                mine.get()
                theirs.put(None)

        return play

    return count / _together(player(one, other), player(other, one))


def queue_8_to_8(library: Any, count: int = 5000) -> float:
    """Items per second through Queue(100), eight producers, eight consumers."""
    shared = library.Queue(100)

    def produce() -> None:
        for number in range(count):
            shared.put(number)

    def consume() -> None:
        for _ in range(count):
            shared.get()

    return 8 * count / _together(*[produce] * 8, *[consume] * 8)


def barrier_8(library: Any, count: int = 300) -> float:
    """Cycles per second of eight threads at a Barrier."""
    barrier = library.Barrier(8)

    def party() -> None:
        for _ in range(count):
            barrier.wait()

    return count / _together(*[party] * 8)


def event_broadcast_100(library: Any, count: int = 20) -> float:
    """Broadcasts per second of an Event to 100 threads that wait, once all of them are started."""
    return _broadcast(library, 100, count, library.Event)


def _broadcast(library: Any, parties: int, count: int, make: Callable[[], Any]) -> float:
    events = [make() for _ in range(count)]
    ready = [library.Semaphore(0) for _ in range(count)]
    done = [library.Semaphore(0) for _ in range(count)]

    def party() -> None:
        for event, here, through in zip(events, ready, done, strict=True):
            here.release()
            event.wait()
            through.release()

    began: list[float] = []
    elapsed: list[float] = []

    def conduct() -> None:
        for event, here, through in zip(events, ready, done, strict=True):
            for _ in range(parties):
                here.acquire()
            began.append(time.perf_counter())
            event.set()
            for _ in range(parties):
                through.acquire()
        elapsed.append(time.perf_counter() - began[0])

    _together(conduct, *[party] * parties)
    return count / elapsed[0]


def notify_all_16(library: Any, count: int = 200) -> float:
    """Rounds per second of notify_all to 16 threads that wait."""
    condition, generation, arrived = library.Condition(), [0], [0]

    def party() -> None:
        for number in range(count):
            with condition:
                arrived[0] += 1
                if arrived[0] == 17:
                    condition.notify_all()
                while generation[0] == number:
                    condition.wait()

    def conduct() -> None:
        for _ in range(count):
            with condition:
                arrived[0] += 1
                while arrived[0] < 17:
                    condition.wait()
                arrived[0] = 0
                generation[0] += 1
                condition.notify_all()

    return count / _together(conduct, *[party] * 16)


def thread_to_asyncio(library: Any, count: int) -> float:
    """Items per second from a thread to a task through a bounded queue of 100."""
    elapsed = [0.0]

    async def main() -> None:
        put, get = _mixed_queue(library)

        def produce() -> None:
            for number in range(count):
                put(number)

        thread = threading.Thread(target=produce)
        start = time.perf_counter()
        thread.start()
        for _ in range(count):
            await get()
        elapsed[0] = time.perf_counter() - start
        thread.join()

    asyncio.run(main())
    return count / elapsed[0]


def _mixed_queue(library: Any) -> tuple[Any, Any]:
    if library is unsnarl:
        ours: unsnarl.Queue[int] = unsnarl.Queue(100)
        return ours.put, ours.async_get
    shared = library.Queue(100)
    if hasattr(shared, "green_put"):
        return shared.green_put, shared.async_get
    return shared.sync_q.put, shared.async_q.get


def asyncio_lock_from_threads(library: Any, count: int = 300) -> float:
    """Acquisitions per second of one lock by four tasks of two loops; for libraries whose lock both loops can use."""
    lock = library.Lock()

    async def party() -> None:
        for _ in range(count):
            async with lock:
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(party(), party())

    return 4 * count / _together(*[lambda: asyncio.run(main())] * 2)


Program = Callable[..., float]
PROGRAMS: dict[str, tuple[Program, float]] = {
    "Condition ping-pong": (ping_pong_condition, 1.5),
    "Semaphore ping-pong": (ping_pong_semaphore, 1.5),
    "Event ping-pong": (ping_pong_event, 1.5),
    "Queue ping-pong": (ping_pong_queue, 1.5),
    "Queue(100), 8 to 8": (queue_8_to_8, 2),
    "Barrier(8)": (barrier_8, 1.5),
    "Event to 100": (event_broadcast_100, 1.5),
    "notify_all of 16": (notify_all_16, 1.5),
}
SLOW_PEER = {"aiologic": 1500, "janus": 1500}
"""Number of items for libraries that wake a thread per item."""


def scenes() -> list[Scene]:
    """Return every scene of this kind."""
    found = libraries()
    both = {name: found[name] for name in (STANDARD, OURS)}
    found.pop(STANDARD)
    return [
        *(
            Scene(label, RATE, {name: partial(program, library) for name, library in both.items()}, goal)
            for label, (program, goal) in PROGRAMS.items()
        ),
        Scene(
            "thread to asyncio, Queue(100)",
            RATE,
            {name: partial(thread_to_asyncio, library, SLOW_PEER.get(name, 20_000)) for name, library in found.items()},
            1.5,
            PEERS,
        ),
        Scene(
            "two loops at one Lock",
            RATE,
            {name: partial(asyncio_lock_from_threads, found[name]) for name in (OURS, "aiologic") if name in found},
            None,
            PEERS,
        ),
    ]
