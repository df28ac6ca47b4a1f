"""One hot path, timed once in this process: ``PYTHON -P measured.py SCENE`` prints one JSON object.

Runs in the build that is measured, so it imports only the standard library and the public API of unsnarl: both
builds must be able to run the same file. It never compares. A statement is timed as the fastest of many samples;
threads are timed over a fixed number of rounds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable
from typing import Any

import unsnarl
from unsnarl import gil

CALLS, SAMPLES = 10_000, 30
"""Calls per sample, a few milliseconds; samples of which the fastest counts."""
ROUNDS, WARM_UP_ROUNDS = 10_000, 500
"""Round trips of two threads that are timed; round trips before them."""
HAND_OVERS = 2
"""Per round trip."""


def fastest_ns(statement: str, **names: Any) -> float:
    """Return nanoseconds per execution of a statement, in the fastest sample."""
    return min(timeit.repeat(statement, globals=names, number=CALLS, repeat=SAMPLES)) / CALLS * 1e9


def together_ns(*functions: Callable[[], Any]) -> float:
    """Run each function in a thread of its own; return nanoseconds until the last thread has ended."""
    threads = [threading.Thread(target=function) for function in functions]
    began_ns = time.perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter_ns() - began_ns


def ping_pong_ns(play: Callable[[int, int], None]) -> float:
    """Return nanoseconds per hand-over of two threads; ``play`` takes a thread's number and its rounds."""
    together_ns(*(lambda me=me: play(me, WARM_UP_ROUNDS) for me in (0, 1)))
    elapsed_ns = together_ns(*(lambda me=me: play(me, ROUNDS) for me in (0, 1)))
    return elapsed_ns / (ROUNDS * HAND_OVERS)


def lock_ping_pong_ns(make: Callable[[], Any]) -> float:
    """Return nanoseconds per hand-over of two threads that release each other's lock."""
    locks = [make(), make()]
    locks[1].acquire()

    def play(me: int, rounds: int) -> None:
        mine, other = locks[me], locks[1 - me]
        for _ in range(rounds):
            mine.acquire()
            other.release()

    return ping_pong_ns(play)


def gil_release() -> float:
    """One thread, scheduler installed: a call that releases the GIL and acquires it again (``os.lseek``)."""
    gil.install()
    with tempfile.TemporaryFile() as file:
        return fastest_ns("lseek(fd, 0, 0)", lseek=os.lseek, fd=file.fileno())


def gil_release_contended() -> float:
    """Two threads, scheduler installed: each keeps releasing and acquiring the GIL."""
    gil.install()
    with tempfile.TemporaryFile() as file:
        lseek, fd = os.lseek, file.fileno()

        def call() -> None:
            for _ in range(ROUNDS):
                lseek(fd, 0, 0)

        together_ns(call, call)
        return together_ns(call, call) / (2 * ROUNDS)


def gil_hand_over() -> float:
    """Two threads, scheduler installed: each hand-over is forced by a pair of the standard library's locks."""
    gil.install()
    return lock_ping_pong_ns(threading.Lock)


def lock_with() -> float:
    """``with`` on an uncontended unsnarl.Lock."""
    return fastest_ns("with lock: pass", lock=unsnarl.Lock())


def lock_ping_pong() -> float:
    """Two threads that release each other's unsnarl.Lock."""
    return lock_ping_pong_ns(unsnarl.Lock)


def queue_put_get() -> float:
    """``put`` and ``get`` on an unsnarl.Queue in one thread."""
    queue: unsnarl.Queue[int] = unsnarl.Queue()
    return fastest_ns("queue.put(1); queue.get()", queue=queue)


def queue_ping_pong() -> float:
    """Two threads that pass one item back and forth over two unsnarl.Queues."""
    queues: list[Any] = [unsnarl.Queue(), unsnarl.Queue()]
    queues[0].put(None)

    def play(me: int, rounds: int) -> None:
        get, put = queues[me].get, queues[1 - me].put
        for _ in range(rounds):
            get()
            put(None)

    return ping_pong_ns(play)


SCENES: dict[str, Callable[[], float]] = {
    "gil release and acquire, one thread": gil_release,
    "gil release and acquire, two threads": gil_release_contended,
    "gil hand-over, two threads": gil_hand_over,
    "Lock with, uncontended": lock_with,
    "Lock ping-pong, two threads": lock_ping_pong,
    "Queue put and get, one thread": queue_put_get,
    "Queue ping-pong, two threads": queue_ping_pong,
}
"""Each returns nanoseconds per operation."""


if __name__ == "__main__":
    print(json.dumps({"ns": SCENES[sys.argv[1]]()}))
