"""A producer and a consumer that alternate through locks or a condition, with or without CPU-bound threads.

``lock``: two locks, each released by one thread and waited for by the other.
``condition``: one condition around a buffer for one item; both wait for it and notify it.

Prints hand-overs per second, counted by the consumer, and the work of the CPU-bound
threads during that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import measured

STEPS = 500
"""Additions in a unit of the CPU-bound threads' work."""


def over_locks(library: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the producer's and the consumer's step, each waiting for the other's."""
    full, empty = library.Semaphore(0), library.Semaphore(1)
    if hasattr(library, "Lock") and hasattr(library.Lock(), "acquire"):
        full, empty = library.Lock(), library.Lock()
        full.acquire()
    wait_full, wait_empty = measured.acquirer(full), measured.acquirer(empty)

    def produce() -> None:
        wait_empty()
        full.release()

    def consume() -> None:
        wait_full()
        empty.release()

    return produce, consume


def over_condition(library: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the producer's and the consumer's step, around a buffer for one item and one condition."""
    condition = library.Condition(library.Lock())
    buffer: list[None] = []

    def produce() -> None:
        with condition:
            while buffer:
                condition.wait()
            buffer.append(None)
            condition.notify()

    def consume() -> None:
        with condition:
            while not buffer:
                condition.wait()
            buffer.pop()
            condition.notify()

    return produce, consume


WAYS = {"lock": over_locks, "condition": over_condition}


class Hog(threading.Thread):
    """A CPU-bound thread that counts its work."""

    def __init__(self) -> None:
        """Start the thread."""
        super().__init__(daemon=True)
        self.work = 0
        self.start()

    def run(self) -> None:
        """Compute for ever."""
        while True:
            x = 1
            for _ in range(STEPS):
                x = (x * 31 + 7) % 1_000_003
            self.work += 1


def main() -> None:
    """Measure once."""
    parser = measured.parser(__doc__)
    parser.add_argument("way", choices=tuple(WAYS))
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    produce, consume = WAYS[arguments.way](measured.begin(arguments))

    def produce_for_ever() -> None:
        while True:
            produce()

    threading.Thread(target=produce_for_ever, daemon=True).start()
    hogs = [Hog() for _ in range(arguments.hogs)]
    began_s = now_s = time.perf_counter()
    work, count = sum(hog.work for hog in hogs), 0
    while now_s - began_s < arguments.seconds:
        consume()
        count += 1
        now_s = time.perf_counter()
    elapsed_s = now_s - began_s
    done = (sum(hog.work for hog in hogs) - work) / elapsed_s
    measured.print_figures(handovers_per_s=count / elapsed_s, **({"work_per_s": done} if hogs else {}))
    measured.leave()


if __name__ == "__main__":
    main()
