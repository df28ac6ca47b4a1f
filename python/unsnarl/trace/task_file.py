"""Reads the file that says what the tasks of a process waited for and which gave way, which ``traced/tasks.py`` writes.

Pure: text in, data out. Entries that cannot be read are skipped.
"""

from __future__ import annotations

from unsnarl.trace.loop_rounds import Counted, Looks, Timed
from unsnarl.trace.model import Location, TaskWaits, Thread
from unsnarl.trace.traced import timers
from unsnarl.trace.traced.giving_way import LOOKS
from unsnarl.trace.traced.tasks import FIELD, LINE_FIELD

_NUMBERS = 7
"""Fields before the stack: the thread, whether the wait is for other tasks, three times, a count, a time."""


def parse(text: str, threads: list[Thread]) -> list[TaskWaits]:
    """Return what the tasks waited for, the longest first."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    result: list[TaskWaits] = []
    for entry in text.split("\n"):
        fields = entry.split(FIELD)
        try:
            tid, is_inner, idle_ns, task_ns, waited_ns, most, seen_ns = map(int, fields[:_NUMBERS])
            stack = [_location(line) for line in fields[_NUMBERS:]]
        except ValueError:
            continue
        if tid in numbers and stack:
            times = (idle_ns, task_ns, waited_ns)
            result.append(TaskWaits(numbers[tid], bool(is_inner), *times, most, seen_ns, stack))
    return sorted(result, key=lambda waits: -waits.task_ns)


def counted(text: str, threads: list[Thread], kind: str) -> list[Counted]:
    """Return what was counted in the entries of a kind (`traced/giving_way.py`)."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    result: list[Counted] = []
    for entry in text.split("\n"):
        of, *fields = entry.split(FIELD)
        if of != kind:
            continue
        try:
            tid, count = map(int, fields[:2])
            stack = [_location(line) for line in fields[2:]]
        except ValueError:
            continue
        if tid in numbers and stack:
            result.append(Counted(numbers[tid], count, stack))
    return result


def timed(text: str, threads: list[Thread]) -> list[Timed]:
    """Return the waits of loops that were sampled, and those that timers of tasks ended (`traced/timers.py`)."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    result: list[Timed] = []
    for entry in text.split("\n"):
        of, *fields = entry.split(FIELD)
        if of not in (timers.ENTRY, timers.WAITS):
            continue
        try:
            tid, count, total_ns = map(int, fields[:3])
            stack = [_location(line) for line in fields[3:]]
        except ValueError:
            continue
        is_whole = count > 0 and total_ns > 0 and bool(stack) == (of == timers.ENTRY)
        if tid in numbers and is_whole:
            result.append(Timed(numbers[tid], count, total_ns, stack))
    return result


def looks(text: str, threads: list[Thread]) -> dict[int, Looks]:
    """Return which rounds of loops were looked at, by the number of the thread."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    result: dict[int, Looks] = {}
    for entry in text.split("\n"):
        kind, *fields = entry.split(FIELD)
        if kind == LOOKS:
            try:
                tid, ready, gave, empty, at_once = map(int, fields)
                result |= {numbers[tid]: Looks(ready, gave, empty, at_once)} if tid in numbers else {}
            except ValueError:
                continue
    return result


def _location(text: str) -> Location:
    file, function, line = text.split(LINE_FIELD)
    return Location(file, function, int(line))
