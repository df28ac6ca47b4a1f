"""The verdict over CPython's own tests, some of which depend on time and fail on a busy machine.

Invariant: a test that fails in every run of its module is a failure; a run without results is a failure immediately.
"""

import time
from collections.abc import Callable, Collection

import pytest

RUN_LIMIT_S = 280
ALL_RUNS_LIMIT_S = 570
"""Seconds for one test: the second watchdog of all tests ends the process after 900 s (pyproject.toml)."""
REPEATS = 2
"""The maximal number of further runs of a module in which a test has failed, if there is time."""

has_time_to_repeat = pytest.mark.timeout(ALL_RUNS_LIMIT_S + 15)


def failing_each_time(failures: Callable[[], set[str]], known: Collection[str] = ()) -> set[str]:
    """Return the tests that fail in the first run and in all repeated ones, except those known to fail."""
    last_begin_s = time.monotonic() + ALL_RUNS_LIMIT_S - RUN_LIMIT_S
    unexpected = failures().difference(known)
    for _ in range(REPEATS):
        if not unexpected or time.monotonic() > last_begin_s:
            break
        unexpected &= failures()
    return unexpected


def name_of(line: str) -> str:
    """Return the name of a test as unittest prints it, without the parameters of a subtest, which may vary."""
    return " ".join(line.split()[:2])
