"""Every primitive with 1, 2 and 4 threads that run at the same time, in operations per second: without a GIL only.

Where there is a GIL these threads would take turns, and `contended` measures what matters there.
Invariant: all libraries run the same function, for the same number of operations of all threads together.
"""

from __future__ import annotations

import sysconfig
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from bench.primitives.scene import OURS, RATE, STANDARD, Scene, libraries

CROWDS = (1, 2, 4)
BLOCKS = 400_000
ITEMS = 48_000
NATIVE_ITEMS = 960_000
"""Items through a queue that is native in both libraries: 48,000 take 10 ms, much of it the starts of the threads."""
ROUNDS = 2_000
NATIVE = {"Lock", "RLock", "SimpleQueue"}
"""Those that the standard library implements in C: the goal is to be no slower."""


def at_once(parties: Iterable[Callable[[], None]]) -> float:
    """Return the seconds from the moment when all threads are ready until all have ended."""
    bodies = list(parties)
    gate = threading.Barrier(len(bodies) + 1)

    def run(body: Callable[[], None]) -> None:
        gate.wait()
        body()

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def guard(name: str, library: Any, threads: int) -> float:
    """Blocks entered and left per second."""
    shared = getattr(library, name)()

    def party() -> None:
        for _ in range(BLOCKS // threads):
            with shared:
                pass

    return BLOCKS / at_once([party] * threads)


def notification(_name: str, library: Any, threads: int) -> float:
    """Notifications per second of a Condition for which nobody waits."""
    shared = library.Condition()

    def party() -> None:
        for _ in range(BLOCKS // threads):
            with shared:
                shared.notify()

    return BLOCKS / at_once([party] * threads)


def flag(_name: str, library: Any, threads: int) -> float:
    """Waits per second for an Event that is set."""
    shared = library.Event()
    shared.set()

    def party() -> None:
        for _ in range(BLOCKS // threads):
            shared.wait()

    return BLOCKS / at_once([party] * threads)


def meeting(_name: str, library: Any, threads: int) -> float:
    """Meetings per second at a Barrier."""
    shared = library.Barrier(threads)

    def party() -> None:
        for _ in range(ROUNDS):
            shared.wait()

    return ROUNDS / at_once([party] * threads)


def transfer(name: str, library: Any, threads: int, *bound: int) -> float:
    """Items per second through a queue: one thread alone, or so many producers and as many consumers."""
    shared = getattr(library, name)(*bound)
    items = NATIVE_ITEMS if name in NATIVE else ITEMS
    count = items // threads

    def alone() -> None:
        for number in range(count):
            shared.put(number)
            shared.get()

    def produce() -> None:
        for number in range(count):
            shared.put(number)

    def consume() -> None:
        for _ in range(count):
            shared.get()

    return items / at_once([alone] if threads == 1 else [*[produce] * threads, *[consume] * threads])


Program = Callable[..., float]
PROGRAMS: dict[str, tuple[str, Program, tuple[int, ...]]] = {
    "Lock": ("Lock", guard, ()),
    "RLock": ("RLock", guard, ()),
    "Semaphore": ("Semaphore", guard, ()),
    "BoundedSemaphore": ("BoundedSemaphore", guard, ()),
    "Condition, notify": ("Condition", notification, ()),
    "Event, wait": ("Event", flag, ()),
    "Barrier": ("Barrier", meeting, ()),
    "Queue(100)": ("Queue", transfer, (100,)),
    "Queue()": ("Queue", transfer, ()),
    "LifoQueue(100)": ("LifoQueue", transfer, (100,)),
    "PriorityQueue(100)": ("PriorityQueue", transfer, (100,)),
    "SimpleQueue": ("SimpleQueue", transfer, ()),
}
"""The label of each scene: the class, the program, and arguments for it."""


def scenes() -> list[Scene]:
    """Return every scene of this kind; none where there is a GIL."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return []
    found = libraries()
    return [
        Scene(
            f"{label}, {threads} at once",
            RATE,
            {library: partial(program, name, found[library], threads, *bound) for library in (STANDARD, OURS)},
            1 if name in NATIVE else 2,
        )
        for label, (name, program, bound) in PROGRAMS.items()
        for threads in CROWDS
    ]
