"""Tells whether a loop of asyncio may have made a long round at a time, from what `traced/long_rounds.py` gathers.

Keeps which tasks gave way as well. Pure: text in, data out. Entries that cannot be read are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unsnarl.trace.traced.long_rounds import ROUND, THREAD, UNTIL
from unsnarl.trace.traced.tasks import FIELD

if TYPE_CHECKING:
    from unsnarl.trace.model import Location, Thread


@dataclass(frozen=True, slots=True)
class Counted:
    """How often something was seen of a thread's loop.

    Attributes:
        thread: the thread's number.
        count: the rounds, of those that were looked at, in which it was seen.
        stack: the lines of a task, the innermost first, or the first line of a callback.
    """

    thread: int
    count: int
    stack: list[Location]


@dataclass(frozen=True, slots=True)
class Looks:
    """The rounds of a thread's loop that were looked at, as `traced/giving_way.py` counts them."""

    ready: int = 0
    gave: int = 0
    empty: int = 0
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class LoopRounds:
    """The long rounds of the loops of a process; times are nanoseconds since the start of its recording.

    Attributes:
        until_ns: until when rounds were watched.
        threads: the numbers of the threads whose rounds were watched, and from when on.
        long: the number of a thread, and when long rounds of its loop began and ended.
        giving: at which stacks tasks gave way before a round.
        finds: the callbacks of what was ready again after a round that had found something at once.
        looks: the rounds that were looked at, by the number of the thread.
    """

    until_ns: int = 0
    threads: dict[int, int] = field(default_factory=dict[int, int])
    long: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    giving: list[Counted] = field(default_factory=list["Counted"])
    finds: list[Counted] = field(default_factory=list["Counted"])
    looks: dict[int, Looks] = field(default_factory=dict[int, "Looks"])

    def within(self, thread: int, begin_ns: int, length_ns: int) -> list[int]:
        """Return how long the parts of a stretch of a thread are that lie in one long round each.

        A stretch that was not watched as a whole may be one.
        """
        end_ns = begin_ns + length_ns
        if thread not in self.threads or begin_ns < self.threads[thread] or end_ns > self.until_ns:
            return [length_ns]
        parts = [min(end_ns, until) - max(begin_ns, since) for of, since, until in self.long if of == thread]
        return [part for part in parts if part > 0]


def parse(text: str, threads: list[Thread], started_ns: int) -> LoopRounds:
    """Return the long rounds that a file tells; ``started_ns`` is the start of the recording on the monotonic clock."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    until_ns, watched, long = 0, dict[int, int](), list[tuple[int, int, int]]()
    for entry in text.split("\n"):
        kind, *fields = entry.split(FIELD)
        try:
            if kind == UNTIL:
                (until_ns,) = (int(moment) - started_ns for moment in fields)
            elif kind == THREAD:
                tid, first_ns = map(int, fields)
                watched |= {numbers[tid]: first_ns - started_ns} if tid in numbers else {}
            elif kind == ROUND:
                tid, begin_ns, end_ns = map(int, fields)
                long += [(numbers[tid], begin_ns - started_ns, end_ns - started_ns)] if tid in numbers else []
        except ValueError:
            continue
    return LoopRounds(until_ns, watched, long)
