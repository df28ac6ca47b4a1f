"""Findings about locks that processes share: those of files, and those of multiprocessing; and locks of C code.

A thread that waits for one is in I/O for the recorder, and who holds it is another process's matter. Pure: a
``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace import lock_lines
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, of_life
from unsnarl.trace.model import C_LOCK, COMPUTING, FILE_LOCK, IN_IO, Location, Process

LEAST_NS = 50_000_000
LEAST_SHARE = 0.05
"""The shortest wait at one line, in all and as a share of the life of the thread that waits longest there."""

SEVERE_SHARE = 0.3

LEAST_SAMPLES = 3
"""The fewest samples that tell what a thread waits for at a stack."""

_SHORTER = Remedy("unsnarl will not help here: hold the lock for less time, or split what it guards into more locks")

ONE_EACH = Remedy(
    "unsnarl will not help here: give each thread an object of its own (a connection, a compressor), or let one thread "
    "use it, to which the others pass their work by a queue"
)

_OF_OBJECT = "the lock in C code of"

_SEMAPHORES = "multiprocessing/synchronize.py"

_TAKES = frozenset(("SemLock.__enter__", "Condition.__enter__"))
"""The functions there that take a lock; the others wait for what another process does."""


def findings(process: Process) -> list[Finding]:
    """Return the lines at which threads wait long for locks that other processes may hold, the longest first."""
    times: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    of_files, in_c = _shares(process, FILE_LOCK), _shares(process, C_LOCK)
    used = _used(process, in_c) if in_c else {}
    for number, state, node, time_ns in process.stacks:
        if state != IN_IO or not node:
            continue
        place = str(process.line_of(node))
        if _is_between_processes(process, process.own_stack(node)):
            times["a lock between processes", place][number] += time_ns
        elif (number, node) in of_files:
            times["the lock of a file", place][number] += int(time_ns * of_files[number, node])
        elif (number, node) in in_c:
            what = _lock_in_c(process, number, node, time_ns, used)
            if what:
                times[what, place][number] += int(time_ns * in_c[number, node])
    found = [_finding(process, what, place, by_thread) for (what, place), by_thread in times.items()]
    return sorted((one for one in found if one is not None), key=lambda one: -int(one.figures["total_ns"]))


def _lock_in_c(process: Process, number: int, node: int, time_ns: int, used: dict[str, dict[int, float]]) -> str:
    """Return which lock of C code a thread waits for; an empty string if nothing shows that it is a lock at all."""
    stack = process.own_stack(node)
    if _acquires(process, stack):
        return "a lock in C code"
    if _is_own(process, stack):
        for name in sorted(lock_lines.shared_objects(stack[0].file, stack[0].line)):
            by_thread = used.get(name, {})
            if 2 * (sum(by_thread.values()) - by_thread.get(number, 0.0)) >= time_ns:
                return f"{_OF_OBJECT} `{name}`"
    return ""


def _used(process: Process, in_c: dict[tuple[int, int], float]) -> dict[str, dict[int, float]]:
    """Return by object for how long each thread was in C code, and did not wait for a lock, at lines that call it."""
    used: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for number, state, node, time_ns in process.stacks:
        if state not in (COMPUTING, IN_IO):
            continue
        stack = process.own_stack(node)
        if not _is_own(process, stack):
            continue
        for name in lock_lines.shared_objects(stack[0].file, stack[0].line):
            used[name][number] += time_ns * (1 - in_c.get((number, node), 0.0))
    return used


def in_c_ns(process: Process) -> int:
    """Return for how long threads were blocked on locks of C code that the program itself called."""
    shares = _shares(process, C_LOCK)
    return sum(
        int(time_ns * shares[number, node])
        for number, state, node, time_ns in process.stacks
        if state == IN_IO and (number, node) in shares and _is_own(process, process.own_stack(node))
    )


def _shares(process: Process, peer: str) -> dict[tuple[int, int], float]:
    """Return the share of the samples of a thread at a stack in which it waited for a peer."""
    counts: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for waits in process.peers:
        entry = counts[waits.thread, waits.node]
        entry[0] += waits.count if waits.peer == peer else 0
        entry[1] += waits.count
    return {key: locked / whole for key, (locked, whole) in counts.items() if locked >= LEAST_SAMPLES}


def _is_between_processes(process: Process, stack: list[Location]) -> bool:
    """Tell whether the program itself waits; multiprocessing's queues hold a lock while they wait for items."""
    inner = next((index for index, line in enumerate(stack) if not line.file.endswith(_SEMAPHORES)), 0)
    return (
        0 < inner < len(stack)
        and all(line.function in _TAKES for line in stack[:inner])
        and not process.is_library(stack[inner])
    )


def _acquires(process: Process, stack: list[Location]) -> bool:
    """Tell whether the program's own line calls ``acquire``: that of multiprocessing is C code, and on no stack."""
    return _is_own(process, stack) and lock_lines.calls_acquire(stack[0].file, stack[0].line)


def _is_own(process: Process, stack: list[Location]) -> bool:
    return bool(stack) and not process.is_library(stack[0])


def _finding(process: Process, what: str, place: str, by_thread: dict[int, int]) -> Finding | None:
    number = max(by_thread, key=lambda number: by_thread[number])
    thread, longest_ns, total_ns = process.threads[number], by_thread[number], sum(by_thread.values())
    life_ns = sum(thread.totals_ns)
    if longest_ns < max(LEAST_NS, LEAST_SHARE * life_ns):
        return None
    others = len(by_thread) - 1
    details = [f"{others} more {'threads wait' if others > 1 else 'thread waits'} there: {duration(total_ns)} in all"]
    return Finding(
        "shared-lock",
        SEVERE if longest_ns > SEVERE_SHARE * life_ns else NOTABLE,
        f"thread `{thread.label}` waits for {what} at {place}: {of_life(process, longest_ns, life_ns)}",
        ["another process or thread holds it meanwhile", *(details if others else [])],
        thread.label,
        place,
        {"threads": len(by_thread), "total_ns": total_ns, "longest_ns": longest_ns},
        ONE_EACH if what.startswith(_OF_OBJECT) else _SHORTER,
    )
