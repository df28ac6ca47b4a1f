"""Threads that wait for others: that depend on another one, get items from it, or wait for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, MS, pair, thread, waits
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import convoys, dependence, locks, resources, stuck
from unsnarl.trace.findings.conclusions import all_findings
from unsnarl.trace.model import IN_IO, LOCK, Location, Process

WORKER, CLIENT = 0, 1
GET, PUT = 1, 2
"""Nodes: the line of a client that waits, and the line of the worker that ends the wait."""


def served(**client: int) -> Process:
    """Return a run in which a client waits for a worker that computes, 40 % of the time for the GIL."""
    times = {"on_lock_ns": LENGTH * 6 // 10, "waiting_ns": LENGTH * 4 // 10} | client
    threads = [thread(WORKER, "worker", running_ns=LENGTH, takes=2000), thread(CLIENT, "client", **times)]
    tables: dict[str, Any] = {
        "contention": {"pairs": [pair(800)], "long_holds": [], "wakeups": [], "histogram": [0] * 32},
        "locations": {"1": ["/srv/app.py", "ask", 3], "2": ["/srv/app.py", "answer", 7]},
        "nodes": {"1": [0, 1], "2": [0, 2]},
        "stacks": [[CLIENT, LOCK, GET, times["on_lock_ns"]]],
        "locks": [waits(wait_node=GET, waiter=CLIENT, releaser=WORKER, release_node=PUT, left_out=0, left_out_ns=0)],
    }
    return process(length_ns=LENGTH, threads=threads, **tables)


def test_a_thread_that_waits_for_the_one_that_computes_gains_nothing_by_the_scheduler() -> None:
    run = served()
    assert dependence.depends_on(run, CLIENT, frozenset((WORKER,)))
    [convoy] = convoys.findings(run)
    assert convoy.remedy is not None
    assert (convoy.severity, convoy.remedy.command, convoy.remedy.saves_ns) == ("notable", None, None)


def test_a_thread_with_io_of_its_own_gains() -> None:
    run = served(on_lock_ns=LENGTH // 2, io_ns=LENGTH // 10)
    assert not dependence.depends_on(run, CLIENT, frozenset((WORKER,)))
    [convoy] = convoys.findings(run)
    assert convoy.remedy is not None
    assert convoy.remedy.command == "unsnarl run"


@pytest.mark.parametrize(("file", "is_dependent"), [("/lib/threading.py", True), ("/srv/app.py", False)])
def test_what_seems_to_be_io_within_a_wait_is_a_want_of_a_processor(file: str, *, is_dependent: bool) -> None:
    run = served(on_lock_ns=LENGTH // 2, io_ns=LENGTH // 10)
    locations = run.locations | {9: Location(file, "Condition.wait", 359)}
    run = replace(
        run,
        locations=locations,
        nodes=run.nodes | {9: (GET, 9)},
        stacks=[*run.stacks, (CLIENT, IN_IO, 9, LENGTH // 10)],
    )
    assert dependence.depends_on(run, CLIENT, frozenset((WORKER,))) == is_dependent


@pytest.mark.parametrize("on_lock_ns", [0, LENGTH // 1000])
def test_a_thread_that_hardly_waits_for_others_gains_by_the_scheduler(on_lock_ns: int) -> None:
    """Such as one that writes short lines to a socket or a log."""
    run = served(on_lock_ns=on_lock_ns, waiting_ns=LENGTH * 96 // 100, io_ns=LENGTH // 100)
    assert not dependence.depends_on(run, CLIENT, frozenset((WORKER,)))
    [convoy] = convoys.findings(run)
    assert convoy.remedy is not None
    assert (convoy.severity, convoy.remedy.command) == ("severe", "unsnarl run")


@pytest.mark.parametrize(("function", "is_dependent"), [("Thread.join", True), ("Lock.acquire", False)])
def test_a_thread_that_joins_others_depends_on_them_though_it_mostly_waits_for_the_gil(
    function: str, *, is_dependent: bool
) -> None:
    """On a busy machine it waits so for most of the time in which they work."""
    run = served(on_lock_ns=LENGTH * 7 // 100, waiting_ns=LENGTH * 85 // 100)
    locations = run.locations | {9: Location("/lib/threading.py", function, 1100)}
    run = replace(run, locations=locations, nodes=run.nodes | {3: (0, 1), GET: (3, 9)})
    assert dependence.depends_on(run, CLIENT, frozenset((WORKER,))) == is_dependent


def test_a_thread_whose_waits_another_one_ends_does_not_depend() -> None:
    assert not dependence.depends_on(served(), CLIENT, frozenset((7,)))


@pytest.mark.parametrize(
    ("wait", "release", "kind"),
    [
        ("item = items.get()", "items.put(item)", "no-lock-contention"),
        ("with lock:", "lock.release()", "contended-lock"),
        ("lock.acquire()", "items.put(item)", "contended-lock"),
    ],
)
def test_an_item_of_a_queue_in_c_is_no_lock(tmp_path: Path, wait: str, release: str, kind: str) -> None:
    source = tmp_path / "app.py"
    source.write_text(f"{wait}\n{release}\n")
    run = process(
        length_ns=LENGTH,
        threads=[thread(WORKER, "worker"), thread(CLIENT, "client", on_lock_ns=LENGTH)],
        locations={"1": [str(source), "ask", 1], "2": [str(source), "answer", 2]},
        nodes={"1": [0, 1], "2": [0, 2]},
        stacks=[[CLIENT, LOCK, GET, LENGTH]],
        locks=[waits(wait_node=GET, waiter=CLIENT, releaser=WORKER, release_node=PUT, left_out=0, left_out_ns=0)],
    )
    [found] = locks.findings(run)
    assert found.kind == kind


def blocked(*ends: tuple[int, bool], lines: dict[str, list[Any]] | None = None) -> Process:
    """Return a run whose threads wait for locks, each from half of the run until a time; or ends before."""
    threads: list[dict[str, Any]] = []
    for number, (until, has_ended) in enumerate(ends):
        stretches = [[0, LENGTH // 2, 0, 0], [LENGTH // 2, until - LENGTH // 2, LOCK, number + 1]]
        entry = thread(number, f"worker-{number}", on_lock_ns=until - LENGTH // 2)
        threads.append({**entry, "stretches": stretches, "has_ended": has_ended})
    places = lines or {str(number): ["/srv/app.py", f"take_{number}", number] for number in range(1, len(ends) + 1)}
    stacks = [[number, LOCK, number + 1, LENGTH // 2] for number in range(len(ends))]
    nodes = {n: [0, int(n)] for n in places}
    return process(length_ns=LENGTH, threads=threads, locations=places, nodes=nodes, stacks=stacks)


def test_threads_that_wait_until_the_end_are_named_with_their_lines() -> None:
    """Without a source nothing shows that they hold a lock themselves."""
    [found] = stuck.findings(blocked((LENGTH, False), (LENGTH, False)))
    assert (found.kind, found.severity, found.figures["threads"]) == ("stuck", "notable", 2)
    assert "`worker-0` at /srv/app.py:1 in take_1, `worker-1` at /srv/app.py:2 in take_2" in found.title
    kinds = {finding.kind for finding in all_findings([blocked((LENGTH, False), (LENGTH, False))])}
    assert "stuck" in kinds
    assert "no-lock-contention" not in kinds


BOTH_HOLD = """\
def one():
    with left:
        with right: pass
def two():
    right.acquire()
    left.acquire()
"""
ONE_HOLDS = """\
def one():
    with left:
        signal.acquire()
def two():
    def inner():
        with left: pass
    left.acquire(); left.release()
    signal.acquire()
"""
ITEMS = """\
def one():
    with left:
        mail = mails.get()
def two(take):
    right.acquire()
    image = take()
"""


@pytest.mark.parametrize(
    ("source", "at", "severities"),
    [
        (BOTH_HOLD, (3, 6), ["severe"]),
        (BOTH_HOLD, (3, 3), ["severe"]),
        ("def take(): left.acquire()", (1, 1), ["notable"]),
        (ONE_HOLDS, (3, 8), ["notable"]),
        (ITEMS, (3, 6), []),
        ("with (\n  left,\n  right,\n):\n  pass", (3, 3), ["severe"]),
        ("this is no Python: acquire", (1, 1), ["notable"]),
    ],
    ids=["two orders", "one line", "a signal", "one holds", "items", "one statement", "unreadable"],
)
def test_only_threads_that_hold_a_lock_wait_for_each_other(
    tmp_path: Path, source: str, at: tuple[int, int], severities: list[str]
) -> None:
    (tmp_path / "app.py").write_text(source)
    lines: dict[str, list[Any]] = {str(n): [str(tmp_path / "app.py"), "f", line] for n, line in enumerate(at, 1)}
    found = stuck.findings(blocked((LENGTH, False), (LENGTH, False), lines=lines))
    assert [finding.severity for finding in found] == severities


@pytest.mark.parametrize(
    "end",
    [(LENGTH, True), (LENGTH - 900 * MS, False), (LENGTH // 2 + 100 * MS, False)],
    ids=["has ended", "went on", "for a short time"],
)
def test_a_wait_that_ends_is_no_deadlock(end: tuple[int, bool]) -> None:
    assert stuck.findings(blocked(end)) == []


@pytest.mark.parametrize(
    ("released_in", "releaser", "is_found"),
    [
        ("site-packages/urllib3/pool.py", CLIENT, True),
        ("site-packages/urllib3/pool.py", WORKER, False),
        ("site-packages/feeder/put.py", CLIENT, False),
    ],
    ids=["given back", "new work", "of another package"],
)
def test_an_empty_pool_is_one_whose_waiters_give_back(released_in: str, releaser: int, *, is_found: bool) -> None:
    run = process(
        length_ns=LENGTH,
        threads=[thread(WORKER, "worker"), thread(CLIENT, "client", on_lock_ns=LENGTH)],
        text="cpython\x1f3.13\x1f/lib\x1fpython\x1fapp.py",
        locations={
            "1": ["/lib/queue.py", "Queue.get", 180],
            "2": ["/site-packages/urllib3/pool.py", "Pool.take", 280],
            "3": ["/srv/app.py", "fetch", 5],
            "4": [f"/{released_in}", "give", 9],
        },
        nodes={"1": [2, 1], "2": [3, 2], "3": [0, 3], "4": [0, 4]},
        stacks=[[CLIENT, LOCK, 1, LENGTH]],
        locks=[waits(wait_node=1, waiter=CLIENT, releaser=releaser, release_node=4, left_out=0, left_out_ns=0)],
    )
    found = resources.findings(run)
    assert [(finding.kind, finding.place) for finding in found] == [("empty-pool", "/srv/app.py:5 in fetch")] * is_found
