"""Findings about event loops: a callback that runs, waits or sleeps for long stalls all others.

A thread has an event loop if it waits in the selector of one of the libraries in ``loops``, or runs a callback below
one: a loop that always has something to run never waits. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from unsnarl.trace import import_lines, loops
from unsnarl.trace.findings.account import is_idle_in_loop, is_recording
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, of_life
from unsnarl.trace.loop_rounds import Part
from unsnarl.trace.model import COMPUTING, IN_IO, LOCK, RUNNING, SLEEPING, WAITING, Process, Thread

STALL_NS = 50_000_000
"""The shortest stall: asyncio's debug mode reports callbacks from 100 ms on, and two of them are noticed."""

STALL_SHARE = 0.02
"""The least share of the thread's life."""

MOST_STALLS = 5

STARVED_SHARE = 0.1
"""The share of the stalls' time, from which on it is said that the thread had the GIL and no processor."""

_DOES = {
    RUNNING: "computes",
    IN_IO: "waits for I/O",
    LOCK: "waits for a lock",
    SLEEPING: "sleeps",
    COMPUTING: "computes in C code",
}


def findings(process: Process) -> list[Finding]:
    """Return the stalls of the event loops of a process, the longest in all first."""
    # All threads together have few stacks.
    is_below = functools.cache(functools.partial(is_below_loop, process))
    is_idle = functools.cache(functools.partial(is_idle_in_loop, process))
    found: list[Finding] = []
    for number, thread in enumerate(process.threads):
        loop = _loop(process, thread, is_below, is_idle)
        if loop is not None:
            found += _stalls(process, number, loop)
    return sorted(found, key=lambda finding: -int(finding.figures["total_ns"]))[:MOST_STALLS]


def is_below_loop(process: Process, node: int) -> bool:
    """Tell whether a thread runs a callback at a stack, as far as callbacks run below their loop."""
    return loops.running(process.own_stack(node)) is not None


@dataclass(frozen=True, slots=True)
class _Loop:
    """The loop of a thread.

    Attributes:
        from_ns: when it was idle first, or ran a callback; before, it may not have run.
        until_ns: when it last began to be idle or to run a callback.
        library: whose loop it is.
        base: the file and the function in which its thread began, as far as the stack goes.
        is_below: tells whether a stack is that of a callback below the loop.
    """

    from_ns: int
    until_ns: int
    library: loops.Library
    base: tuple[str, str]
    is_below: Callable[[int], bool]

    def may_run(self, process: Process, begin_ns: int, node: int) -> bool:
        """Tell whether the loop may have run at a stack, and not what its thread does before or after it.

        The stack of a greenlet begins with its own function, and a deep one is cut: neither has the loop's own lines.
        """
        if begin_ns < self.from_ns or self.library.runs is None or self.is_below(node):
            return begin_ns >= self.from_ns
        return _base(process, node) != self.base and begin_ns <= self.until_ns


def _loop(
    process: Process, thread: Thread, is_below: Callable[[int], bool], is_idle: Callable[[int], bool]
) -> _Loop | None:
    runs = [
        (begin, node)
        for begin, _, state, node in thread.stretches
        if (state in (IN_IO, SLEEPING) and is_idle(node)) or is_below(node)
    ]
    if not runs:
        return None
    (from_ns, node), (until_ns, _) = runs[0], runs[-1]
    stack = process.own_stack(node)
    library = loops.selecting(stack) or loops.running(stack) or loops.ASYNCIO
    return _Loop(from_ns, until_ns, library, _base(process, node), is_below)


def _base(process: Process, node: int) -> tuple[str, str]:
    """Return the file and the function of the outermost line of a stack."""
    stack = process.own_stack(node)
    return (stack[-1].file, stack[-1].function) if stack else ("", "")


def _stalls(process: Process, number: int, loop: _Loop) -> list[Finding]:
    """Return the stalls of a loop by line: a call may compute there with the GIL, and then without it."""
    thread = process.threads[number]
    stalls: dict[str | None, list[tuple[int, Part]]] = defaultdict(list)
    for begin, length_ns, state, node in _calls(thread):
        if length_ns < STALL_NS or not loop.may_run(process, begin, node) or not _is_in_callback(process, state, node):
            continue
        place = process.program_line_of(node)
        if state == IN_IO and process.lacks_processor(number, node):
            state = COMPUTING  # noqa: PLW2901
        # A stack that was read while a coroutine ended is cut above it, and a deep one is cut below the loop's lines.
        is_watched = loops.is_in_round(process.own_stack(node)) or _base(process, node) != loop.base
        whole = [Part(length_ns, length_ns)]
        for part in process.loop_rounds.within(number, begin, length_ns) if is_watched else whole:
            # A thread that keeps the GIL needs a processor: the loop of one that lacked it stalled for that.
            if (part.ran_ns if state == RUNNING else part.length_ns) >= STALL_NS:
                stalls[str(place) if place else None].append((state, part))
    life = process.seen_life_ns(thread)
    return [
        _stall(process, thread, loop.library, place, calls)
        for place, calls in stalls.items()
        if sum(part.length_ns for _, part in calls) >= STALL_SHARE * life
    ]


def _is_in_callback(process: Process, state: int, node: int) -> bool:
    """Tell whether a loop's thread is in a callback; waits for the GIL and imports are other findings'."""
    if state == WAITING or (state == IN_IO and not node):
        return False
    if state in (IN_IO, SLEEPING) and is_idle_in_loop(process, node):
        return False
    if is_recording(process, node):
        return False
    return not import_lines.is_importing(process.stack(node))


def _calls(thread: Thread) -> list[tuple[int, int, int, int]]:
    """Return the stretches of a thread, with both parts of a call without the GIL as one, in the longer part's state.

    The recorder divides such a call into what it computed and the rest. On a busy machine the rest is also its wait
    for a processor, so neither part alone tells how long the loop stood still.
    """
    calls: list[tuple[int, int, int, int]] = []
    for begin, length_ns, state, node in thread.stretches:
        if calls and node and state == IN_IO and calls[-1][2:] == (COMPUTING, node) and sum(calls[-1][:2]) == begin:
            began, computed_ns = calls.pop()[:2]
            longer = COMPUTING if computed_ns >= length_ns else IN_IO
            calls.append((began, computed_ns + length_ns, longer, node))
        else:
            calls.append((begin, length_ns, state, node))
    return calls


def _stall(
    process: Process, thread: Thread, library: loops.Library, place: str | None, stalls: list[tuple[int, Part]]
) -> Finding:
    lengths = [part.length_ns for _, part in stalls]
    state = max(_DOES, key=lambda state: sum(part.length_ns for of, part in stalls if of == state))
    starved_ns = sum(part.length_ns - part.ran_ns for of, part in stalls if of == RUNNING)
    total, life = sum(lengths), process.seen_life_ns(thread)
    times = "once" if len(lengths) == 1 else f"{len(lengths):,} times"
    at = f" at {place}" if place else ""
    unknown = "its line is not recorded, since no other thread waited"
    if library.name == "asyncio":
        unknown += ": PYTHONASYNCIODEBUG=1 names it"
    details = [] if place else [unknown]
    if starved_ns >= STARVED_SHARE * total:
        details = [f"the thread had no processor for {duration(starved_ns)} of it", *details]
    return Finding(
        "loop-stall",
        SEVERE if total > 0.1 * life else NOTABLE,
        f"the event loop of thread `{thread.label}` stalls {times} for up to {duration(max(lengths))}, "
        f"{of_life(process, total, life)}: a callback {_DOES[state]}{at}",
        ["all other tasks of the loop wait meanwhile", *details],
        thread.label,
        place,
        {"count": len(lengths), "total_ns": total, "longest_ns": max(lengths), "computes": state == RUNNING},
        _remedy(state, library),
    )


def _remedy(state: int, library: loops.Library) -> Remedy:
    in_thread = f"in a thread (`{library.in_thread}`)"
    if state in (IN_IO, LOCK, SLEEPING) and library.patches:
        return Remedy(
            f"let {library.name} switch: `{library.patches}` before all other imports replaces the standard library's "
            f"call. A call of another library runs {in_thread}"
        )
    if state in (IN_IO, LOCK, SLEEPING):
        return Remedy(f"await it: use an asynchronous library, or run the call {in_thread}")
    if state == COMPUTING:
        return Remedy(f"the call releases the GIL: run it {in_thread}")
    return Remedy("unsnarl will not help here: run the call in a process, or split it and yield to the loop in between")
