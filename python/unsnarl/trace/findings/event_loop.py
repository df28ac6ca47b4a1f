"""Findings about event loops: a callback that runs, waits or sleeps for long stalls all others.

A thread has an event loop if it waits in the loop's own selector (asyncio, trio, gevent's hub), or runs a callback of
asyncio: a loop that always has something to run never waits. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from unsnarl.trace.findings.account import GEVENT_SELECTS, TRIO_SELECTS, is_idle_in_loop, is_recording
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, of_life
from unsnarl.trace.model import COMPUTING, IN_IO, LOCK, RUNNING, SLEEPING, WAITING, Process, Thread

STALL_NS = 50_000_000
"""The shortest stall: asyncio's debug mode reports callbacks from 100 ms on, and two of them are noticed."""

STALL_SHARE = 0.02
"""The least share of the thread's life."""

MOST_STALLS = 5

ASYNCIO_RUNS, ASYNCIO_WAITS = "asyncio/events.py", "asyncio/base_events.py"
"""The ends of the files of asyncio's own loops: whose ``Handle._run`` runs each callback, and which waits."""

_DOES = {
    RUNNING: "computes",
    IN_IO: "waits for I/O",
    LOCK: "waits for a lock",
    SLEEPING: "sleeps",
    COMPUTING: "computes in C code",
}

_IN_THREAD = {
    "trio": "trio.to_thread.run_sync",
    "gevent": "gevent.get_hub().threadpool.apply",
    "asyncio": "asyncio.to_thread",
}
"""How a loop of each library runs a call in a thread."""


def findings(process: Process) -> list[Finding]:
    """Return the stalls of the event loops of a process, the longest in all first."""
    found: list[Finding] = []
    for number, thread in enumerate(process.threads):
        loop = _loop(process, thread)
        if loop is not None:
            found += _stalls(process, number, loop)
    return sorted(found, key=lambda finding: -int(finding.figures["total_ns"]))[:MOST_STALLS]


def is_in_handle(process: Process, node: int) -> bool:
    """Tell whether a thread runs a callback of an asyncio loop at a stack."""
    return any(line.function == "Handle._run" and line.file.endswith(ASYNCIO_RUNS) for line in process.own_stack(node))


@dataclass(frozen=True, slots=True)
class _Loop:
    """The loop of a thread.

    Attributes:
        from_ns: when it was idle first, or ran a callback; before, it may not have run.
        until_ns: when it last began to be idle or to run a callback.
        library: whose loop it is.
        is_own: whether it is one of asyncio's own loops, which run each callback in a handle.
        base: the file and the function in which its thread began, as far as the stack goes.
        in_handle: tells whether a stack is that of a callback.
    """

    from_ns: int
    until_ns: int
    library: str
    is_own: bool
    base: tuple[str, str]
    in_handle: Callable[[int], bool]

    def may_run(self, process: Process, begin_ns: int, node: int) -> bool:
        """Tell whether the loop may have run at a stack, and not what its thread does before or after it.

        The stack of a greenlet begins with its own function, and a deep one is cut: neither has the handle.
        """
        if begin_ns < self.from_ns or not self.is_own or self.in_handle(node):
            return begin_ns >= self.from_ns
        return _base(process, node) != self.base and begin_ns <= self.until_ns


def _loop(process: Process, thread: Thread) -> _Loop | None:
    in_handle = functools.cache(functools.partial(is_in_handle, process))
    is_idle = functools.cache(functools.partial(is_idle_in_loop, process))
    runs = [
        (begin, node)
        for begin, _, state, node in thread.stretches
        if (state == IN_IO and is_idle(node)) or in_handle(node)
    ]
    if not runs:
        return None
    (from_ns, node), (until_ns, _) = runs[0], runs[-1]
    is_own = in_handle(node) or any(line.file.endswith(ASYNCIO_WAITS) for line in process.stack(node))
    return _Loop(from_ns, until_ns, _library(process, node), is_own, _base(process, node), in_handle)


def _base(process: Process, node: int) -> tuple[str, str]:
    """Return the file and the function of the outermost line of a stack."""
    stack = process.own_stack(node)
    return (stack[-1].file, stack[-1].function) if stack else ("", "")


def _library(process: Process, node: int) -> str:
    """Return whose loop is idle at a stack."""
    files = [line.file for line in process.stack(node)]
    if any(name.endswith(GEVENT_SELECTS) for name in files):
        return "gevent"
    return "trio" if any(name.endswith(TRIO_SELECTS) for name in files) else "asyncio"


def _stalls(process: Process, number: int, loop: _Loop) -> list[Finding]:
    """Return the stalls of a loop by line: a call may compute there with the GIL, and then without it."""
    thread = process.threads[number]
    stalls: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    for begin, length_ns, state, node in _calls(thread):
        if length_ns < STALL_NS or not loop.may_run(process, begin, node) or not _is_in_callback(process, state, node):
            continue
        place = process.line_of(node)
        if state == IN_IO and process.lacks_processor(number, node):
            state = COMPUTING  # noqa: PLW2901
        stalls[str(place) if place else None].append((state, length_ns))
    life = process.seen_life_ns(thread)
    return [
        _stall(process, thread, loop.library, place, calls)
        for place, calls in stalls.items()
        if sum(length_ns for _, length_ns in calls) >= STALL_SHARE * life
    ]


def _is_in_callback(process: Process, state: int, node: int) -> bool:
    """Tell whether a loop's thread is in a callback; waits for the GIL and imports are other findings'."""
    if state == WAITING or (state == IN_IO and (not node or is_idle_in_loop(process, node))):
        return False
    if is_recording(process, node):
        return False
    return not any(line.file.startswith("<frozen importlib") for line in process.stack(node))


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


def _stall(process: Process, thread: Thread, library: str, place: str | None, stalls: list[tuple[int, int]]) -> Finding:
    lengths = [length_ns for _, length_ns in stalls]
    state = max(_DOES, key=lambda state: sum(length_ns for of, length_ns in stalls if of == state))
    total, life = sum(lengths), process.seen_life_ns(thread)
    times = "once" if len(lengths) == 1 else f"{len(lengths):,} times"
    at = f" at {place}" if place else ""
    unknown = "its line is not recorded, since no other thread waited"
    if library == "asyncio":
        unknown += ": PYTHONASYNCIODEBUG=1 names it"
    details = [] if place else [unknown]
    return Finding(
        "loop-stall",
        SEVERE if total > 0.1 * life else NOTABLE,
        f"the event loop of thread `{thread.label}` stalls {times} for up to {duration(max(lengths))}, "
        f"{of_life(process, total, life)}: a callback {_DOES[state]}{at}",
        ["all other tasks of the loop wait meanwhile", *details],
        thread.label,
        place,
        {"count": len(lengths), "total_ns": total, "longest_ns": max(lengths)},
        _remedy(state, library),
    )


def _remedy(state: int, library: str) -> Remedy:
    in_thread = f"in a thread (`{_IN_THREAD[library]}`)"
    if state in (IN_IO, LOCK, SLEEPING) and library == "gevent":
        return Remedy(
            "let gevent switch: `gevent.monkey.patch_all()` before all other imports replaces the standard library's "
            f"call. A call of another library runs {in_thread}"
        )
    if state in (IN_IO, LOCK, SLEEPING):
        return Remedy(f"await it: use an asynchronous library, or run the call {in_thread}")
    if state == COMPUTING:
        return Remedy(f"the call releases the GIL: run it {in_thread}")
    return Remedy("unsnarl will not help here: run the call in a process, or split it and yield to the loop in between")
