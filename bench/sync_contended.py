"""Time primitives between threads, and between a thread and an event loop.

    python bench/sync_contended.py [-o RESULTS.json] [NAMES...]

Each figure is operations per second, the median of rounds that alternate
between the libraries; every round runs in this process, for a fixed number of
operations. Invariant: all libraries run the same function.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import platform
import queue
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import unsnarl

ROUNDS = 3


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


def queue_8_to_8(library: Any, count: int = 20000) -> float:
    """Items per second through Queue(100), eight producers, eight consumers."""
    shared = library.Queue(100)

    def produce() -> None:
        for number in range(count):
            shared.put(number)

    def consume() -> None:
        for _ in range(count):
            shared.get()

    return 8 * count / _together(*[produce] * 8, *[consume] * 8)


def barrier_8(library: Any, count: int = 500) -> float:
    """Cycles per second of eight threads at a Barrier."""
    barrier = library.Barrier(8)

    def party() -> None:
        for _ in range(count):
            barrier.wait()

    return count / _together(*[party] * 8)


def event_broadcast_100(library: Any, count: int = 30) -> float:
    """Broadcasts per second of an Event to 100 threads that wait."""
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

    def conduct() -> None:
        for event, here, through in zip(events, ready, done, strict=True):
            for _ in range(parties):
                here.acquire()
            event.set()
            for _ in range(parties):
                through.acquire()

    return count / _together(conduct, *[party] * parties)


def notify_all_16(library: Any, count: int = 300) -> float:
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


def thread_to_asyncio(library: Any, count: int = 100_000) -> float:
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


class _StandardLibrary:
    """threading and queue as one namespace."""

    Condition, Semaphore, Event, Barrier = (
        threading.Condition,
        threading.Semaphore,
        threading.Event,
        threading.Barrier,
    )
    Queue = queue.Queue


SCENES: dict[str, tuple[Callable[..., float], tuple[str, ...]]] = {
    "Condition ping-pong": (ping_pong_condition, ("standard library",)),
    "Semaphore ping-pong": (ping_pong_semaphore, ("standard library",)),
    "Event ping-pong": (ping_pong_event, ("standard library",)),
    "Queue ping-pong": (ping_pong_queue, ("standard library",)),
    "Queue(100) 8 to 8": (queue_8_to_8, ("standard library",)),
    "Barrier(8)": (barrier_8, ("standard library",)),
    "Event to 100": (event_broadcast_100, ("standard library",)),
    "notify_all of 16": (notify_all_16, ("standard library",)),
    "thread to asyncio": (thread_to_asyncio, ("culsans", "janus", "aiologic")),
}


def _run(names: list[str]) -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    for label, (function, peers) in SCENES.items():
        if names and not any(name in label for name in names):
            continue
        libraries: dict[str, Any] = {"unsnarl": unsnarl}
        for peer in peers:
            try:
                libraries[peer] = _StandardLibrary if peer == "standard library" else importlib.import_module(peer)
            except ImportError:
                continue
        rounds: dict[str, list[float]] = {name: [] for name in libraries}
        for turn in range(ROUNDS):
            for name in sorted(libraries, reverse=bool(turn % 2)):
                if name == "aiologic":
                    rounds[name].append(function(libraries[name], count=3000))
                else:
                    rounds[name].append(function(libraries[name]))
        results[label] = {name: statistics.median(values) for name, values in rounds.items()}
    return results


def render(results: dict[str, dict[str, float]]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| operations/s | unsnarl | best of the others | which | ratio |", "|---" * 5 + "|"]
    for label, medians in results.items():
        others = {name: value for name, value in medians.items() if name != "unsnarl"}
        best = max(others, key=lambda name: others[name])
        ours = medians["unsnarl"]
        lines.append(f"| {label} | {ours:,.0f} | {others[best]:,.0f} | {best} | {ours / others[best]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("names", nargs="*", help="only scenes whose name contains one of these")
    arguments = parser.parse_args()
    results = _run(arguments.names)
    print(f"CPython {platform.python_version()}, {platform.machine()}\n\n{render(results)}")
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump({"python": platform.python_version(), "per_s": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
