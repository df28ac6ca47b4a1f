"""Tells whether a loop of asyncio may have made a long round at a time, from what `traced/long_rounds.py` gathers.

Keeps which tasks gave way as well. Pure: text in, data out. Entries that cannot be read are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

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
class Timed:
    """The sampled waits of a thread's loop that a timer of a task ended after milliseconds, as `traced/timers.py` says.

    Attributes:
        thread: the thread's number.
        count: how many of these waits there are.
        total_ns: their length.
        stack: the lines of the task, the innermost first; none for all waits of the loop, whatever ended them.
    """

    thread: int
    count: int
    total_ns: int
    stack: list[Location]


class LongRound(NamedTuple):
    """A long round of a thread's loop, in which the thread ran or blocked, and lacked no processor, for ``ran_ns``."""

    thread: int
    begin_ns: int
    end_ns: int
    ran_ns: int


class Part(NamedTuple):
    """A part of a stretch of a thread, in which the thread lacked no processor for ``ran_ns`` at most."""

    length_ns: int
    ran_ns: int


@dataclass(frozen=True, slots=True)
class LoopRounds:
    """The long rounds of the loops of a process; times are nanoseconds since the start of its recording.

    Attributes:
        until_ns: until when rounds were watched.
        threads: the numbers of the threads whose rounds were watched, and from when on.
        long: the long rounds, in the order in which they ended.
        giving: at which stacks tasks gave way before a round.
        finds: the callbacks of what was ready again after a round that had found something at once.
        timed: the sampled waits of loops, and those that timers ended.
        looks: the rounds that were looked at, by the number of the thread.
    """

    until_ns: int = 0
    threads: dict[int, int] = field(default_factory=dict[int, int])
    long: list[LongRound] = field(default_factory=list["LongRound"])
    giving: list[Counted] = field(default_factory=list["Counted"])
    finds: list[Counted] = field(default_factory=list["Counted"])
    timed: list[Timed] = field(default_factory=list["Timed"])
    looks: dict[int, Looks] = field(default_factory=dict[int, "Looks"])

    def within(self, thread: int, begin_ns: int, length_ns: int) -> list[Part]:
        """Return the parts of a stretch of a thread that lie in one long round each.

        A stretch that was not watched as a whole may be one.
        """
        end_ns = begin_ns + length_ns
        if thread not in self.threads or begin_ns < self.threads[thread] or end_ns > self.until_ns:
            return [Part(length_ns, length_ns)]
        own = (one for one in self.long if one.thread == thread)
        parts = ((min(end_ns, one.end_ns) - max(begin_ns, one.begin_ns), one.ran_ns) for one in own)
        return [Part(part_ns, min(part_ns, ran_ns)) for part_ns, ran_ns in parts if part_ns > 0]


def parse(text: str, threads: list[Thread], started_ns: int) -> LoopRounds:
    """Return the long rounds that a file tells; ``started_ns`` is the start of the recording on the monotonic clock."""
    numbers = {thread.tid: number for number, thread in enumerate(threads)}
    until_ns, watched, long = 0, dict[int, int](), list[LongRound]()
    for entry in text.split("\n"):
        kind, *fields = entry.split(FIELD)
        try:
            if kind == UNTIL:
                (until_ns,) = (int(moment) - started_ns for moment in fields)
            elif kind == THREAD:
                tid, first_ns = map(int, fields)
                watched |= {numbers[tid]: first_ns - started_ns} if tid in numbers else {}
            elif kind == ROUND:
                tid, begin_ns, end_ns, ran_ns = map(int, fields)
                one = LongRound(numbers.get(tid, -1), begin_ns - started_ns, end_ns - started_ns, ran_ns)
                long += [one] if tid in numbers else []
        except ValueError:
            continue
    return LoopRounds(until_ns, watched, long)
