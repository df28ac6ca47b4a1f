"""CPU-bound threads that count the work they do.

A hog computes in pure Python and never blocks, so it holds the GIL until another thread requests it.
Each hog has its own counter, written by that thread alone. A reading is taken with the GIL held, so its
time and its counts are consistent however long the reader waited for the GIL.
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

UNIT_STEPS = 500
"""Steps of arithmetic per unit of work: tens of microseconds, far below a slice."""


class Reading(NamedTuple):
    """The work of every hog at one instant."""

    at_s: float
    """``time.perf_counter()`` of the reading, seconds."""
    work: tuple[int, ...]
    """Units done so far, one entry per hog."""


def burn() -> int:
    """Do one unit of work: arithmetic on small integers, without calls or lasting allocations."""
    x = 1
    for _ in range(UNIT_STEPS):
        x = (x * 31 + 7) % 1_000_003
    return x


class Hogs:
    """``count`` CPU-bound daemon threads, started on construction."""

    def __init__(self, count: int) -> None:
        """Start ``count`` hogs; 0 is allowed and costs nothing."""
        self._work = [0] * count
        self._is_stopping = False
        self._threads = [
            threading.Thread(target=self._spin, args=(index,), name=f"hog-{index}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _spin(self, index: int) -> None:
        work = self._work
        while not self._is_stopping:
            burn()
            work[index] += 1

    def read(self) -> Reading:
        """Return the time and every hog's count, taken together."""
        return Reading(time.perf_counter(), tuple(self._work))

    def stop(self) -> None:
        """Request all hogs to end, and wait until they have ended."""
        self._is_stopping = True
        for thread in self._threads:
            thread.join()


def rates(begin: Reading, end: Reading) -> list[float]:
    """Return each hog's units per second between two readings."""
    elapsed_s = end.at_s - begin.at_s
    return [(after - before) / elapsed_s for before, after in zip(begin.work, end.work, strict=True)]


def jain(shares: list[float]) -> float:
    """Return Jain's fairness index of ``shares``: 1 when equal, 1/n when one has all.

    R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
