"""A thread that sleeps shortly, again and again, polls, unless it works in between."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import MS, thread
from tests.unit.test_trace_findings import waits as lock_waits
from tests.unit.test_trace_views import process
from unsnarl.trace.findings.spinning import short_sleeps
from unsnarl.trace.model import IN_IO, LOCK, RUNNING, SLEEPING

SLEEPS = 200


@pytest.mark.parametrize(
    ("between", "changes", "kinds"),
    [
        ([], {}, ["polling"]),
        ([[4 * MS, MS, IN_IO, 0]], {}, []),  # it serves a request, and pauses
        ([[4 * MS, MS, LOCK, 0]], {}, []),  # it takes an item, and pauses
        ([[3 * MS, 4 * MS, RUNNING, 0]], {}, []),  # it computes for longer than it sleeps
        ([[4 * MS, MS, RUNNING, 0]], {"running_ns": 900 * MS}, ["polling"]),  # it has computed before
    ],
)
def test_a_thread_that_works_between_its_sleeps_does_not_poll(
    between: list[list[int]], changes: dict[str, Any], kinds: list[str]
) -> None:
    cycle = [[0, 3 * MS, SLEEPING, 1], *between]
    stretches = [[n * 9 * MS + at, *rest] for n in range(SLEEPS) for at, *rest in cycle]
    own = thread(0, "worker", asleep_ns=SLEEPS * 3 * MS, **changes) | {"stretches": stretches}
    found = short_sleeps(process(length_ns=SLEEPS * 5 * MS, threads=[own]))
    assert [finding.kind for finding in found] == kinds


@pytest.mark.parametrize(("releaser", "waiter", "kinds"), [(0, 1, []), (1, 0, ["polling"]), (None, 1, ["polling"])])
def test_a_thread_that_ends_the_waits_of_others_between_its_sleeps_does_not_poll(
    releaser: int | None, waiter: int, kinds: list[str]
) -> None:
    stretches = [[n * 5 * MS, 3 * MS, SLEEPING, 1] for n in range(SLEEPS)]
    producer = thread(0, "producer", asleep_ns=SLEEPS * 3 * MS) | {"stretches": stretches}
    served = lock_waits(releaser=releaser, waiter=waiter, count=SLEEPS)
    run = process(length_ns=SLEEPS * 5 * MS, threads=[producer, thread(1, "consumer")], locks=[served])
    assert [finding.kind for finding in short_sleeps(run)] == kinds
