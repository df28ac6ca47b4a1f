"""Threads that wait for one another in turn: ``chains.py KIND OPERATIONS``.

Kinds: ``threads`` (each is started and joined before the next), ``stages`` (four threads pass items on by queues of
ten), ``notify`` (20 threads wait for each notify_all), ``loop`` (five threads call a coroutine of an event loop and
wait for its result). An operation is a thread, an item, a notify_all, or a call.
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from counted import report, timed, together

WAITERS, CALLERS, ROOM = 20, 5, 10


def by_threads(count: int) -> float:
    """Return the seconds of threads that are started and joined one after another."""

    def work() -> None:
        for _ in range(count):
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()

    return float(timed(work))


def by_stages(count: int) -> float:
    """Return the seconds in which items pass three bounded queues."""
    queues: list[queue.Queue[int | None]] = [queue.Queue(ROOM) for _ in range(3)]

    def produce() -> None:
        for number in range(count):
            queues[0].put(number)
        queues[0].put(None)

    def pass_on(source: int) -> None:
        while (item := queues[source].get()) is not None:
            queues[source + 1].put(item)
        queues[source + 1].put(None)

    def consume() -> None:
        while queues[-1].get() is not None:
            pass

    return float(together([produce, partial(pass_on, 0), partial(pass_on, 1), consume]))


def by_notify(count: int) -> float:
    """Return the seconds of rounds that a Condition announces to all."""
    changed, state = threading.Condition(), [0]

    def wait() -> None:
        for number in range(count):
            with changed:
                while state[0] <= number:
                    changed.wait()

    def announce() -> None:
        for _ in range(count):
            with changed:
                state[0] += 1
                changed.notify_all()
            time.sleep(0)

    return float(together([*[wait] * WAITERS, announce]))


def by_loop(count: int) -> float:
    """Return the seconds of calls from threads into an event loop."""

    async def answer() -> int:
        return 1

    async def serve() -> float:
        loop = asyncio.get_running_loop()

        def call() -> None:
            for _ in range(count // CALLERS):
                asyncio.run_coroutine_threadsafe(answer(), loop).result()

        began = loop.time()
        await asyncio.gather(*(asyncio.to_thread(call) for _ in range(CALLERS)))
        return loop.time() - began

    return asyncio.run(serve())


KINDS: dict[str, Callable[[int], float]] = {
    "threads": by_threads,
    "stages": by_stages,
    "notify": by_notify,
    "loop": by_loop,
}

if __name__ == "__main__":
    report(int(sys.argv[2]), KINDS[sys.argv[1]](int(sys.argv[2])))
