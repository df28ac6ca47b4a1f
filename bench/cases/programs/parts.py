"""What the programs of the cases share: a thread that computes, a percentile, and the printing of figures."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Self

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
"""How long a case lasts."""


class Spinners:
    """Threads that compute in Python until they are stopped; ``work`` is their rounds a second."""

    def __init__(self, count: int) -> None:
        self._counts = [0] * count
        self._is_over = False
        self._began = 0.0
        self._threads = [threading.Thread(target=self._spin, args=(number,), daemon=True) for number in range(count)]

    def _spin(self, number: int) -> None:
        while not self._is_over:
            sum(range(200))
            self._counts[number] += 1

    def __enter__(self) -> Self:
        """Start them."""
        self._began = time.perf_counter()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them."""
        self._is_over = True
        for thread in self._threads:
            thread.join()

    @property
    def work(self) -> float:
        """The rounds of all threads a second so far: a case whose end is late has computed for longer."""
        return sum(self._counts) / (time.perf_counter() - self._began)


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def compute(seconds: float) -> None:
    """Compute in Python for a time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))


def report(**figures: float) -> None:
    """Print the figures as the last line."""
    print(json.dumps(figures), flush=True)
