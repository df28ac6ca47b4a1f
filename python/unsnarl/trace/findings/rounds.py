"""Findings about event loops that go round without a pause.

``await asyncio.sleep(0)`` in a loop makes the task ready at once, so the loop never waits in its selector. Nor does it
where a socket or file is ready all the time whose callback does nothing about it. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unsnarl.trace import loops, source
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.loop_rounds import Counted, Looks
from unsnarl.trace.model import RUNNING, Location, Process

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_NS = 100_000_000
"""The least time with the GIL of such a loop."""

LEAST_SHARE = 0.2
"""The least share of the thread's life."""

OWN_SHARE = 0.6
"""The least share of that time that is the loop's own: less is the work of callbacks, which may give way meanwhile."""

LEAST_ROUNDS, ROUNDS_SHARE = 10, 0.5
"""The least number of rounds that were looked at inside, and the share of them that tells why a loop goes round."""

GIVING_SHARE = 0.002
"""The least share of that time in which a task just gives way, in loops that are seen from outside only.

It is a small part of a round, and most readings of it fail: of eight recordings of a loop of asyncio on an idle
machine, three to five show it at all.
"""

_SLEEPS_FOR_NOTHING = re.compile(r"\bawait [\w.]*sleep\(0(?:\.0*)?\)")


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a loop goes round: what is said of it before the place, a detail, and what to do instead.

    Attributes:
        is_idle: whether the rounds are for nothing, and no way to pass work on.
    """

    why: str
    detail: str
    instead: str
    is_idle: bool


_GIVING = _Cause(
    "a task gives way again and again, at",
    "a task that gives way is ready again at once, so the loop never waits",
    "await what the task waits for (an Event, a Queue, a Future). A task that computes gives way less often",
    is_idle=True,
)
_READY = _Cause(
    "a socket, a file or a timer is ready each time, and it mostly calls",
    "a socket has room to write nearly always, and one whose peer has closed it can always be read",
    "where the callback has nothing to do, remove the reader or writer until it has; where it does little, do more by "
    "one call (a buffer, a batch)",
    is_idle=True,
)
_AGAIN = _Cause(
    "callbacks and tasks make one another ready, mostly at",
    "each of them does less than the loop has to do for it",
    "do more by one callback: pass items on in batches, or call the next step instead of scheduling it",
    is_idle=False,
)


@dataclass(slots=True)
class _Loop:
    """What a thread does with the GIL in its event loop; times by place of the program.

    Attributes:
        running_ns: the time in the loop.
        own_ns: the part of it that is the loop's own work.
        in_c_ns: the part in C code that the loop calls: a callback, or the few steps into and out of a task.
        is_watched: whether the rounds are asyncio's own.
        giving: the time in which a task just gives way.
        called: the time in callbacks.
    """

    running_ns: int = 0
    own_ns: int = 0
    in_c_ns: int = 0
    is_watched: bool = False
    giving: dict[Location, int] = field(default_factory=lambda: defaultdict[Location, int](int))
    called: dict[Location, int] = field(default_factory=lambda: defaultdict[Location, int](int))

    def add(self, process: Process, node: int, time_ns: int) -> None:
        """Count the time of a stack."""
        stack = process.own_stack(node)
        place = process.program_line_of(node)
        if place is not None and _gives_way(stack, place):
            self.giving[place] += time_ns
        if not loops.is_in_loop(stack):
            return
        self.is_watched |= loops.is_in_round(stack)
        self.running_ns += time_ns
        if loops.is_callback_in_c(stack):
            self.in_c_ns += time_ns
            return
        self.own_ns += time_ns if loops.is_own_work(stack[0]) else 0
        callback = None if loops.is_own_round(stack) else process.program_line(loops.callback(stack))
        if callback is not None:
            self.called[callback] += time_ns

    @property
    def rounds_ns(self) -> int:
        """The time that the rounds themselves take: in C code as well, unless callbacks must be most of that."""
        return self.own_ns + (self.in_c_ns if self.in_c_ns <= self.own_ns else 0)


def findings(process: Process) -> list[Finding]:
    """Return a finding for each thread whose loop goes round without a pause and hardly does anything else."""
    every: dict[int, _Loop] = defaultdict(_Loop)
    for number, state, node, time_ns in process.stacks:
        if state == RUNNING and node:
            every[number].add(process, node, time_ns)
    result: list[Finding] = []
    for number, loop in every.items():
        life_ns = sum(process.threads[number].totals_ns)
        if loop.running_ns < max(LEAST_NS, LEAST_SHARE * life_ns) or loop.rounds_ns < OWN_SHARE * loop.running_ns:
            continue
        why = _why(process, number, loop)
        if why is not None:
            result.append(_finding(process, number, loop, *why))
    return result


def _why(process: Process, number: int, loop: _Loop) -> tuple[Location, _Cause] | None:
    """Return where and why a loop goes round: as noted inside, or else as seen from outside; None if unknown."""
    looks = process.loop_rounds.looks.get(number, Looks())
    called = max(loop.called, key=lambda place: loop.called[place], default=None)
    if looks.ready + looks.empty < LEAST_ROUNDS:
        if sum(loop.giving.values()) < GIVING_SHARE * loop.running_ns:
            return None
        place = max(loop.giving, key=lambda place: loop.giving[place], default=None)
        return (place, _GIVING) if place is not None else None
    if looks.empty > looks.ready:
        found = _most(process, process.loop_rounds.finds, number)
        if found is None or process.is_library(found):
            found = called or found
        return (found, _READY) if found is not None and looks.at_once >= ROUNDS_SHARE * looks.empty else None
    giving = _most(process, process.loop_rounds.giving, number)
    if giving is not None and looks.gave >= ROUNDS_SHARE * looks.ready:
        return giving, _GIVING
    return (called, _AGAIN) if called is not None else None


def _most(process: Process, counted: list[Counted], number: int) -> Location | None:
    """Return the program's line of what was seen most often of a thread's loop."""
    counts: dict[Location, int] = defaultdict(int)
    for one in counted:
        place = process.program_line(one.stack)
        if one.thread == number and place is not None:
            counts[place] += one.count
    return max(counts, key=lambda place: counts[place], default=None)


def _gives_way(stack: Sequence[Location], place: Location) -> bool:
    """Tell whether a task makes itself ready again at once, and lets the others run before.

    ``place`` is the program's line. Of a stack that has changed while it was read, the frames beyond the task's are
    missing.
    """
    if _SLEEPS_FOR_NOTHING.search(source.line(place.file, place.line)):
        return True
    for line, caller in itertools.pairwise(stack):
        if line.function == "__sleep0" and line.file.endswith("asyncio/tasks.py"):
            return True
        if line.function == "checkpoint" and line.file.endswith("trio/_core/_run.py"):
            # Many functions of trio have a checkpoint in addition to what they do.
            return caller.file.endswith("trio/_timeouts.py") or caller == place
    return False


def _finding(process: Process, number: int, loop: _Loop, place: Location, cause: _Cause) -> Finding:
    label = process.label(number)
    own = share(loop.rounds_ns, loop.running_ns)
    return Finding(
        "rounds",
        SEVERE if cause.is_idle and 2 * loop.running_ns > process.length_ns else NOTABLE,
        f"the event loop of thread `{label}` goes round without a pause: {cause.why} {place}",
        [f"of {duration(loop.running_ns)} with the GIL, {own} is the loop's own work", cause.detail],
        label,
        str(place),
        {"own_ns": loop.rounds_ns, "running_ns": loop.running_ns, "is_watched": loop.is_watched},
        Remedy(f"unsnarl will not help here: {cause.instead}"),
    )
