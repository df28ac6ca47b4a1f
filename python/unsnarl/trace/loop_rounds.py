"""Tells whether a loop of asyncio may have made a long round at a time, from what `traced/long_rounds.py` gathers.

Pure: text in, data out. Entries that cannot be read are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unsnarl.trace.traced.long_rounds import ENTRY, WATCHED
from unsnarl.trace.traced.tasks import FIELD

if TYPE_CHECKING:
    from unsnarl.trace.model import Thread


@dataclass(frozen=True, slots=True)
class LoopRounds:
    """The long rounds of the loops of a process; times are nanoseconds since the start of its recording.

    Attributes:
        from_ns, until_ns: when rounds were watched; the same if they were not.
        long: the number of a thread, and when long rounds of its loop began and ended.
    """

    from_ns: int = 0
    until_ns: int = 0
    long: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])

    def within(self, thread: int, begin_ns: int, length_ns: int) -> list[int]:
        """Return how long the parts of a stretch of a thread are that lie in one long round each.

        A stretch that was not watched as a whole may be one.
        """
        end_ns = begin_ns + length_ns
        if begin_ns < self.from_ns or end_ns > self.until_ns:
            return [length_ns]
        parts = [min(end_ns, until) - max(begin_ns, since) for of, since, until in self.long if of == thread]
        return [part for part in parts if part > 0]


def parse(text: str, threads: list[Thread], started_ns: int) -> LoopRounds:
    """Return the long rounds that a file tells; ``started_ns`` is the start of the recording on the monotonic clock."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    watched, long = (0, 0), list[tuple[int, int, int]]()
    for entry in text.split("\n"):
        kind, *fields = entry.split(FIELD)
        try:
            if kind == WATCHED:
                from_ns, until_ns = map(int, fields)
                watched = from_ns - started_ns, until_ns - started_ns
            elif kind == ENTRY:
                tid, from_ns, until_ns = map(int, fields)
                if tid in numbers:
                    long.append((numbers[tid], from_ns - started_ns, until_ns - started_ns))
        except ValueError:
            continue
    return LoopRounds(*watched, long)
