"""Reads the file that says what the tasks of a process waited for and which gave way, which ``traced/tasks.py`` writes.

Pure: text in, data out. Entries that cannot be read are skipped.
"""

from __future__ import annotations

from unsnarl.trace.loop_rounds import GivingWay
from unsnarl.trace.model import Location, TaskWaits, Thread
from unsnarl.trace.traced.giving_way import ENTRY
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


def giving_way(text: str, threads: list[Thread]) -> list[GivingWay]:
    """Return which tasks gave way, the most frequent first."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    result: list[GivingWay] = []
    for entry in text.split("\n"):
        kind, *fields = entry.split(FIELD)
        if kind != ENTRY:
            continue
        try:
            tid, looked_at, count = map(int, fields[:3])
            stack = [_location(line) for line in fields[3:]]
        except ValueError:
            continue
        if tid in numbers and stack:
            result.append(GivingWay(numbers[tid], looked_at, count, stack))
    return sorted(result, key=lambda giving: -giving.count)


def _location(text: str) -> Location:
    file, function, line = text.split(LINE_FIELD)
    return Location(file, function, int(line))
