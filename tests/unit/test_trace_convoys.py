"""Convoys: threads of a kind are one row, and a saving is no longer than a scheduler can make it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, MS, locations, pair, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import convoys
from unsnarl.trace.model import IN_IO, RUNNING, WAITING, Process

COUNT = 90


def run_of(
    *waiters: str, holds: list[list[int]] | None = None, waits: list[list[int]] | None = None, waited_ms: int = 10
) -> Process:
    """Return a run in which threads wait behind a busy one at /app/app.py:3, COUNT times each."""
    times: dict[str, Any] = {"io_ns": LENGTH * 9 // 10, "waiting_ns": LENGTH // 10, "stretches": waits or []}
    threads = [
        thread(0, "worker", running_ns=LENGTH, takes=2000) | {"stretches": holds or []},
        *(thread(number, name) | times for number, name in enumerate(waiters, 1)),
    ]
    times = {"total_ns": waited_ms * MS * COUNT, "median_ns": waited_ms * MS}
    pairs = [pair(COUNT) | times | {"waiter": number} for number in range(1, len(threads))]
    contention = {"pairs": pairs, "long_holds": [], "wakeups": [], "histogram": [0] * 32}
    tables = locations(("/app/app.py", "work", 3))
    return process(length_ns=LENGTH, interval_ns=5 * MS, threads=threads, contention=contention, **tables)


@pytest.mark.parametrize(
    ("names", "rows"),
    [(("client-1", "client-2"), 1), (("client-1", "health-1"), 2), (("health", "health"), 2)],
)
def test_threads_of_a_kind_that_wait_alike_are_one_row(names: tuple[str, str], rows: int) -> None:
    found = convoys.findings(run_of(*names))
    assert len(found) == rows
    assert sum(int(finding.figures["total_ns"]) for finding in found) == 2 * COUNT * 10 * MS
    if rows == 1:
        assert found[0].title.startswith("2 threads, `client-1` and others like it, waited 10.0 ms each time behind")
        assert found[0].title.endswith("180 times: 9.0 % of their lives")


def test_threads_that_wait_at_once_save_no_more_than_one_of_them() -> None:
    [found] = convoys.findings(run_of(*(f"client-{number}" for number in range(20))))
    assert found.remedy is not None
    assert found.remedy.saves_ns == COUNT * 10 * MS


def test_threads_that_are_left_out_are_counted_as_threads() -> None:
    names = [f"{kind}-{number}" for kind in ("a", "b", "c", "d", "e", "f") for number in (1, 2)]
    found = convoys.findings(run_of(*names))
    assert len(found) == convoys.MOST_CONVOYS
    assert found[-1].details[-1] == "4 more threads wait in the same way"


@pytest.mark.parametrize(
    ("kept_ms", "unasked_ms", "saved_ms"),
    [
        (5, 0, 10 * COUNT),  # dropped on request
        (10, 0, 5 * COUNT),  # a call into C of ten milliseconds
        (5, 70, 10 * COUNT),  # kept for long before anybody waited
    ],
)
def test_a_scheduler_saves_the_switch_interval_where_the_holder_keeps_on(
    kept_ms: int, unasked_ms: int, saved_ms: int
) -> None:
    begins = [number * 100 * MS for number in range(COUNT)]
    holds = [[begin, (unasked_ms + kept_ms) * MS, RUNNING, 1] for begin in begins]
    waits = [[begin + unasked_ms * MS, kept_ms * MS, WAITING, 0] for begin in begins]
    asleep = [[begin + (unasked_ms + kept_ms) * MS, MS, IN_IO, 0] for begin in begins]
    [found] = convoys.findings(run_of("health", holds=holds, waits=sorted([*waits, *asleep])))
    assert found.remedy is not None
    assert found.remedy.saves_ns == saved_ms * MS
    is_said = any("it usually keeps the GIL there for 10.0 ms of the wait" in detail for detail in found.details)
    assert is_said == (kept_ms > 5)
