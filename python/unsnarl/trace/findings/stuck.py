"""Findings about threads that wait for a lock until the end: a deadlock, if each holds what another one waits for.

Their waits never end, so no release shows who holds the lock. The lines show it: a thread may wait for ever for an item
of a queue as well, and only threads that hold a lock themselves can wait for each other. Pure: a ``Process`` in,
findings out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unsnarl.trace import lock_lines
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration
from unsnarl.trace.findings.locks import is_for_work
from unsnarl.trace.model import LOCK, PACKAGES, Location, Process, Thread

LEAST_NS = 500_000_000
"""The shortest wait that may be one without an end."""

END_NS = 50_000_000
"""The most that a wait ends before the recording does."""

MOST_NAMED = 3


def findings(process: Process) -> list[Finding]:
    """Return one finding about all threads of a process that wait for a lock until the end."""
    stuck: list[_Stuck] = []
    for number, thread in enumerate(process.threads):
        length_ns, state, node = until_the_end(process, thread)
        line = process.line_of(node) if node else None
        if state != LOCK or line is None or is_for_work(process, node):
            continue
        # A library's thread without work may wait for a lock of its own.
        if not process.is_library(line) and PACKAGES not in line.file and _may_acquire(process, node):
            wants, holds = (_names(process, node, read) for read in (lock_lines.acquired, lock_lines.held))
            stuck.append(_Stuck(number, line, length_ns, bool(holds), wants))
    return [_finding(process, stuck)] if stuck else []


def until_the_end(process: Process, thread: Thread) -> tuple[int, int, int]:
    """Return length, state and stack of a thread's last stretch, if it is long and lasts until the end; else zeros."""
    if thread.has_ended or not thread.stretches:
        return 0, 0, 0
    begin, length_ns, state, node = thread.stretches[-1]
    is_last = begin + length_ns >= process.length_ns - END_NS and length_ns >= LEAST_NS
    return (length_ns, state, node) if is_last else (0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Stuck:
    number: int
    line: Location
    length_ns: int
    holds: bool
    wants: frozenset[str]


def _may_acquire(process: Process, node: int) -> bool:
    """Tell whether the innermost line of a stack acquires a lock, or cannot be read."""
    innermost = process.stack(node)[0]
    return lock_lines.acquires(innermost.file, innermost.line) is not False


def _names(process: Process, node: int, of_line: Callable[[str, int], frozenset[str]]) -> frozenset[str]:
    """Return the names that the program's own lines of a stack give, as ``lock_lines.acquired`` reads them."""
    lines = (line for line in process.own_stack(node) if not process.is_library(line))
    return frozenset[str]().union(*(of_line(line.file, line.line) for line in lines))


def _at_work(process: Process, stuck: list[_Stuck]) -> str:
    """Return in words which thread was not blocked at the end and holds what a stuck one waits for; empty if none."""
    wanted = frozenset[str]().union(*(entry.wants for entry in stuck))
    for number, thread in enumerate(process.threads):
        begin, length_ns, state, node = thread.stretches[-1] if thread.stretches else (0, 0, LOCK, 0)
        is_last = begin + length_ns >= process.length_ns - END_NS
        is_at_work = not thread.has_ended and is_last and state != LOCK
        if is_at_work and not wanted.isdisjoint(_names(process, node, lock_lines.held)):
            return f"`{process.label(number)}` was still at work at {process.line_of(node)}"
    return ""


_ONE_ORDER = Remedy(
    "unsnarl will not help here: acquire the locks in one order everywhere, release one before the next, "
    "or acquire with a timeout"
)
_SHORTER = Remedy("unsnarl will not help here: hold the lock for less time")


def _finding(process: Process, stuck: list[_Stuck]) -> Finding:
    longest = max(stuck, key=lambda entry: entry.length_ns)
    named = [f"`{process.label(entry.number)}` at {entry.line}" for entry in stuck[:MOST_NAMED]]
    more = f", and {len(stuck) - MOST_NAMED} more" if len(stuck) > MOST_NAMED else ""
    who = "1 thread waits" if len(stuck) == 1 else f"{len(stuck)} threads wait"
    is_crossed = sum(entry.holds for entry in stuck) > 1
    at_work = "" if is_crossed else _at_work(process, stuck)
    if is_crossed:
        detail = "if each of them holds the lock that another one waits for, none ever goes on: a deadlock"
    elif at_work:
        detail = f"{at_work}, and may hold the lock: the program ended before"
    else:
        detail = "the thread that holds the lock does not release it any more"
    return Finding(
        "stuck",
        SEVERE if is_crossed else NOTABLE,
        f"{who} for a lock until the end, for up to {duration(longest.length_ns)}: {', '.join(named)}{more}",
        [detail],
        process.label(longest.number),
        str(longest.line),
        {"threads": len(stuck), "longest_ns": longest.length_ns},
        _SHORTER if at_work else _ONE_ORDER,
    )
