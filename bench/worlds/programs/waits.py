"""Threads that mostly wait: ``waits.py KIND SECONDS``.

Kinds: ``queue`` (a Queue is fed every millisecond, one thread consumes), ``event`` (50 threads wait for an Event with a
timeout of 10 ms), ``poll`` (20 threads get from a Queue with a timeout of 1 ms). An operation is an item or a timeout.
Here the figure that matters is the processor time of an operation: the rate is given by the clock.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from functools import partial

from counted import report, together


def by_queue(seconds: float) -> int:
    """Return how many items were passed on."""
    items: queue.Queue[int | None] = queue.Queue()
    count = int(seconds * 1000)

    def feed() -> None:
        for number in range(count):
            time.sleep(0.001)
            items.put(number)
        items.put(None)

    def consume() -> None:
        while items.get() is not None:
            pass

    together([feed, consume])
    return count


def by_event(seconds: float) -> int:
    """Return how often a thread gave up waiting."""
    end_s, never, counts = time.monotonic() + seconds, threading.Event(), [0] * 50

    def wait(number: int) -> None:
        while time.monotonic() < end_s:
            never.wait(0.01)
            counts[number] += 1

    together([partial(wait, number) for number in range(50)])
    return sum(counts)


def by_poll(seconds: float) -> int:
    """Return how often a thread found nothing."""
    end_s, never, counts = time.monotonic() + seconds, queue.Queue[int](), [0] * 20

    def poll(number: int) -> None:
        while time.monotonic() < end_s:
            try:
                never.get(timeout=0.001)
            except queue.Empty:
                counts[number] += 1

    together([partial(poll, number) for number in range(20)])
    return sum(counts)


KINDS = {"queue": by_queue, "event": by_event, "poll": by_poll}

if __name__ == "__main__":
    began_s = time.perf_counter()
    done = KINDS[sys.argv[1]](float(sys.argv[2]))
    report(done, time.perf_counter() - began_s)
