"""Threads of one kind are one group, and threads or timers for each small task are found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import MS, Entry, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import gil, threads
from unsnarl.trace.model import Process
from unsnarl.trace.thread_groups import groups_of

LIBRARY = "/usr/lib/python3.13"


def named(*names: str) -> Process:
    return process(threads=[thread(number, name) for number, name in enumerate(names)])


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["main", "main"], ["main", "main"]),
        (["w-1", "w-2", "w-3"], ["w-1", "w-2", "w-3"]),
        (["main", "w-10", "w-9", "w-2", "w-1"], ["main", "w-1 … w-10"]),
        (["w-1"] * 4, ["w-1 (x4)"]),
        (["a-1 (x)", "a-2 (y)", "a-3 (x)", "a-4 (y)"], ["a-1 (x)", "a-2 (y)", "a-3 (x)", "a-4 (y)"]),
    ],
)
def test_threads_whose_names_differ_in_a_number_are_a_group(names: list[str], labels: list[str]) -> None:
    found = groups_of(named(*names))
    assert [group.label for group in found] == labels
    assert sorted(number for group in found for number in group.numbers) == list(range(len(names)))


def many(count: int, run: str, *, life_ns: int = MS) -> Process:
    """Return a process whose main thread starts threads that run a function of ``threading``."""
    short: list[Entry] = [
        thread(number, f"Thread-{number}", running_ns=life_ns)
        | {"begin_ns": number * MS, "end_ns": number * MS + life_ns}
        for number in range(1, count + 1)
    ]
    stacks: dict[str, Any] = {
        "locations": {
            "1": [f"{LIBRARY}/threading.py", "Thread.start", 9],
            "2": ["/srv/app.py", "main", 3],
            "3": [f"{LIBRARY}/threading.py", run, 7],
        },
        "nodes": {"1": [0, 2], "2": [1, 1], "3": [0, 3]},
        "stacks": [[0, 2, 2, 50 * MS], [1, 2, 3, MS]],
    }
    main = thread(0, "MainThread", on_lock_ns=60 * MS)
    return process(threads=[main, *short], text=f"cpython\x1f3.13.0\x1f{LIBRARY}\x1fpython\x1fapp.py", **stacks)


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (many(60, "Timer.run"), ["thread-per-timer"]),
        (many(40, "Timer.run"), []),
        (many(120, "Thread.run"), ["thread-per-task"]),
        (many(120, "Thread.run", life_ns=900 * MS), []),
        (many(90, "Thread.run"), []),
    ],
)
def test_a_thread_for_each_timer_or_task_is_found(found: Process, kinds: list[str]) -> None:
    findings = threads.findings(found)
    assert [finding.kind for finding in findings] == kinds
    assert all(finding.place == "/srv/app.py:3 in main" for finding in findings)


def test_threads_that_fill_the_gil_alike_are_no_convoy() -> None:
    waits = [
        {"waiter": 1, "holder": 0, "count": 90, "total_ns": 900 * MS, "longest_ns": 20 * MS, "median_ns": 10 * MS,
         "holder_node": 0, "waiter_node": 0},
    ]  # fmt: skip
    alike = [
        thread(number, f"handler-{number}", running_ns=450 * MS, io_ns=100 * MS, waiting_ns=450 * MS, takes=9000)
        for number in range(2)
    ]
    contention = {"pairs": waits, "long_holds": [], "wakeups": [], "histogram": [0] * 32}
    full = process(length_ns=1000 * MS, threads=alike, contention=contention)
    assert [finding.kind for finding in gil.findings(full)] == ["full-gil"]
    idle = process(length_ns=3000 * MS, threads=alike, contention=contention)
    assert "convoy" in [finding.kind for finding in gil.findings(idle)]
