"""Many threads at one lock: ``shared.py KIND THREADS OPERATIONS``.

Kinds: ``print`` (lines to /dev/null), ``random`` (one generator under a Lock), ``cache`` (an LRU cache of cachetools
under an RLock), ``counter`` (a Lock around one addition). OPERATIONS is for each thread.
"""

from __future__ import annotations

import importlib
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

from counted import report, together


def by_print(operations: int) -> Callable[[], None]:
    """Return the work of a thread that prints."""
    sink = open("/dev/null", "w")  # noqa: SIM115 -- open for as long as the process lives

    def work() -> None:
        for number in range(operations):
            print("line", number, file=sink, flush=True)

    return work


def by_random(operations: int) -> Callable[[], None]:
    """Return the work of a thread that draws from a shared generator."""
    lock, generator = threading.Lock(), random.Random(1)

    def work() -> None:
        for _ in range(operations):
            with lock:
                generator.randrange(1000)

    return work


def by_cache(operations: int) -> Callable[[], None]:
    """Return the work of a thread that reads through a shared cache."""
    cachetools: Any = importlib.import_module("cachetools")

    cached = cachetools.cached(cachetools.LRUCache(maxsize=128), lock=threading.RLock())
    square = cached(int.bit_count)

    def work() -> None:
        for number in range(operations):
            square(number % 200)

    return work


def by_counter(operations: int) -> Callable[[], None]:
    """Return the work of a thread that counts."""
    lock, total = threading.Lock(), [0]

    def work() -> None:
        for _ in range(operations):
            with lock:
                total[0] += 1

    return work


KINDS = {"print": by_print, "random": by_random, "cache": by_cache, "counter": by_counter}

if __name__ == "__main__":
    report(int(sys.argv[2]) * int(sys.argv[3]), together([KINDS[sys.argv[1]](int(sys.argv[3]))] * int(sys.argv[2])))
