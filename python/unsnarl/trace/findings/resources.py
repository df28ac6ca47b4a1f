"""Findings about pools of resources that are empty: a library's connections, which other threads have to give back.

Such a wait looks like one for work: a queue's `get`. But the threads that wait are those that put, and both are done by
one package. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.findings.locks import is_for_work, is_polled
from unsnarl.trace.model import LOCK, PACKAGES, Location, LockWaits, Process

LEAST_NS = 50_000_000
"""The least time that threads wait for a resource."""

LEAST_SHARE = 0.1
"""The least part of the run that threads wait, all together."""


def findings(process: Process) -> list[Finding]:
    """Return a finding for each of the program's lines at which threads wait for a resource."""
    groups: dict[tuple[str, str], list[LockWaits]] = defaultdict(list)
    waiters: dict[str, set[int]] = defaultdict(set)
    for number, state, node, _ in process.stacks:
        if state == LOCK:
            waiters[str(process.line_of(node))].add(number)
    for waits in process.locks:
        inner, released = process.line_of(waits.wait_node), process.line_of(waits.release_node)
        package = _package(inner)
        is_given_back = package == _package(released) and waits.releaser in waiters[str(inner)]
        if package and is_given_back and is_for_work(process, waits.wait_node):
            groups[str(process.program_line(process.own_stack(waits.wait_node))), str(inner)].append(waits)
    least_ns = max(LEAST_NS, LEAST_SHARE * process.seen_ns)
    return [
        _finding(process, place, inner, group)
        for (place, inner), group in groups.items()
        if sum(waits.total_ns for waits in group) >= least_ns and not is_polled(group)
    ]


def _package(line: Location | None) -> str:
    """Return the package of a library that is not the standard one; empty for other lines."""
    return line.file.partition(PACKAGES)[2].partition("/")[0] if line is not None else ""


def _finding(process: Process, place: str, inner: str, group: list[LockWaits]) -> Finding:
    total, count = sum(waits.total_ns for waits in group), sum(waits.count for waits in group)
    longest = max(waits.longest_ns for waits in group)
    label = process.label(max(group, key=lambda waits: waits.total_ns).waiter)
    return Finding(
        "empty-pool",
        SEVERE if total > process.seen_ns else NOTABLE,
        f"a pool is empty: threads wait at {place} for what others give back, {count:,} times, {duration(total)} in "
        f"all ({share(total, process.seen_ns)} of the run), up to {duration(longest)}",
        [f"the pool is that at {inner}"],
        label,
        place,
        {"count": count, "total_ns": total},
        Remedy(
            "unsnarl will not help here: a larger pool if what it connects to has room (urllib3: `maxsize`), "
            "or give the resource back sooner"
        ),
    )
