"""Groups threads whose names differ only in a number: ``worker-1 … worker-50`` are one kind of thread.

Pure. Must never: put two threads of one purpose into two groups because of their numbers, nor threads without a
number into one. Invariant: each thread is in exactly one group.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from unsnarl.trace.model import Process, Thread

LEAST = 4
"""Threads that make a group; fewer are shown one by one."""

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class ThreadGroup:
    """Threads of one kind, or a single thread.

    Attributes:
        label: the name of the one thread, or of the first and the last.
        numbers: the numbers of its threads.
    """

    label: str
    numbers: list[int]

    def threads(self, process: Process) -> list[Thread]:
        """Return its threads."""
        return [process.threads[number] for number in self.numbers]


def kind_of(label: str) -> str:
    """Return a thread's name with its numbers replaced, which is the same for all threads of a kind."""
    return _NUMBER.sub("#", label)


def groups_of(process: Process) -> list[ThreadGroup]:
    """Return the groups of a process's threads, in the order of their first threads."""
    by_pattern: dict[str, list[int]] = defaultdict(list)
    for number, thread in enumerate(process.threads):
        pattern = kind_of(thread.label)
        by_pattern[pattern if "#" in pattern else f"{pattern}\0{number}"].append(number)
    result: list[ThreadGroup] = []
    for numbers in by_pattern.values():
        if len(numbers) < LEAST:
            result += [ThreadGroup(process.label(number), [number]) for number in numbers]
        else:
            result.append(ThreadGroup(_label(process, numbers), numbers))
    return sorted(result, key=lambda group: group.numbers[0])


def _label(process: Process, numbers: list[int]) -> str:
    names = sorted({process.label(number) for number in numbers}, key=_natural)
    return f"{names[0]} … {names[-1]}" if len(names) > 1 else f"{names[0]} (x{len(numbers)})"


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which ``worker-2`` comes before ``worker-10``."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
