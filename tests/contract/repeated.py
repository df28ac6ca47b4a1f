"""Judges what CPython's own tests say: some of them depend on time, and a busy machine makes those fail.

Invariant: what fails in every run of its module is a failure; a run without results is one at once.
"""

import time
from collections.abc import Callable, Collection

import pytest

RUN_LIMIT_S = 280
ALL_RUNS_LIMIT_S = 570
"""Of one test: the second watchdog of all tests ends the process after 900 s (pyproject.toml)."""
REPEATS = 2
"""More runs of a module in which something has failed, as far as there is time for them."""

has_time_to_repeat = pytest.mark.timeout(ALL_RUNS_LIMIT_S + 15)


def failing_each_time(failures: Callable[[], set[str]], known: Collection[str] = ()) -> set[str]:
    """Return what fails in the first run and all repeated ones, but for what is known to."""
    last_begin_s = time.monotonic() + ALL_RUNS_LIMIT_S - RUN_LIMIT_S
    unexpected = failures().difference(known)
    for _ in range(REPEATS):
        if not unexpected or time.monotonic() > last_begin_s:
            break
        unexpected &= failures()
    return unexpected


def name_of(line: str) -> str:
    """Return the name of a test as unittest prints it, without the parameters of a subtest: they may vary."""
    return " ".join(line.split()[:2])
