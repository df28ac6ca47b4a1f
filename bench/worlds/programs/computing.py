"""Threads that compute, some in C: ``computing.py KIND [THREADS]``.

Kinds: ``numpy`` (four threads multiply matrices), ``sort``, ``json``, ``zlib`` (four threads each), ``main`` (the main
thread computes, THREADS others sleep a millisecond at a time), ``main-saturating`` (the others read from pipes that
are never empty). An operation is a round of the computing threads.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

from counted import report, timed, together

THREADS, ROUNDS = 4, 60


def by_numpy() -> Callable[[], object]:
    """Return a round with numpy, whose products release the GIL."""
    numpy: Any = importlib.import_module("numpy")
    matrix = numpy.random.default_rng(1).random((160, 160))

    def work() -> None:
        for _ in range(5):
            matrix.dot(matrix).sum()

    return work


def by_sort() -> Callable[[], object]:
    """Return a round with sorted()."""
    generator = random.Random(1)
    values = [generator.random() for _ in range(20_000)]
    return lambda: sorted(values)


def by_json() -> Callable[[], object]:
    """Return a round with json."""
    document = json.dumps([{"id": n, "name": f"name {n}", "tags": ["a", "b"]} for n in range(1000)])
    return lambda: json.loads(document)


def by_zlib() -> Callable[[], object]:
    """Return a round with zlib, which releases the GIL."""
    data = random.Random(1).randbytes(100_000)
    return lambda: zlib.compress(data)


KINDS = {"numpy": by_numpy, "sort": by_sort, "json": by_json, "zlib": by_zlib}


def threads_compute(kind: str) -> tuple[int, float]:
    """Return rounds and seconds of four threads that compute."""
    work = KINDS[kind]()

    def rounds() -> None:
        for _ in range(ROUNDS):
            work()

    return THREADS * ROUNDS, together([rounds] * THREADS)


def round_of_main() -> None:
    """Compute for about a millisecond."""
    total = 0
    for number in range(20_000):
        total += number * number


def main_computes(others: int, *, saturating: bool) -> tuple[int, float, float]:
    """Return rounds and seconds of a main thread that computes next to I/O threads; and their calls per second."""
    counts = [0] * others

    def sleep(number: int) -> None:
        while True:
            time.sleep(0.001)
            counts[number] += 1

    def read(number: int) -> None:
        reading, writing = os.pipe()
        while True:
            os.write(writing, b"x")
            os.read(reading, 1)
            counts[number] += 1

    for number in range(others):
        threading.Thread(target=read if saturating else sleep, args=(number,), daemon=True).start()
    rounds = 1500

    def work() -> None:
        for _ in range(rounds):
            round_of_main()

    before = sum(counts)
    elapsed_s = timed(work)
    return rounds, elapsed_s, (sum(counts) - before) / elapsed_s


if __name__ == "__main__":
    if sys.argv[1].startswith("main"):
        rounds, elapsed_s, others_per_s = main_computes(int(sys.argv[2]), saturating=sys.argv[1] == "main-saturating")
        report(rounds, elapsed_s, others_per_s=others_per_s)
    else:
        report(*threads_compute(sys.argv[1]))
    os._exit(0)  # the daemon threads never end
