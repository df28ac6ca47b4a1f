"""Findings about tasks of event loops that wait for each other: for a lock, a semaphore, room in a queue.

The thread of such a loop is idle, so its own records show nothing. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace.findings.account import idle_ns
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import PACKAGES, Location, Process, TaskWaits

LEAST_NS = 50_000_000
"""The least time in which a task waited."""

LEAST_SHARE = 0.1
"""The least share of the run."""

SEVERE_SHARE = 0.3
"""The share from which on such waits are severe, if several tasks wait at once."""

_PERMITS = "hold a permit for less time, or allow more permits if what they guard has room"

_OUTSIDE = "do the I/O outside of the lock, or use a lock for each resource"
_CONSUMERS = "its consumers are slower than its producers: start more of them"

_FUNCTIONS = {
    "Lock.acquire": ("a lock", _OUTSIDE),
    "Semaphore.acquire": ("a permit of a semaphore", _PERMITS),
    "Queue.put": ("room in a queue", _CONSUMERS),
    "_LockImpl.acquire": ("a lock", _OUTSIDE),
    "CapacityLimiter.acquire_on_behalf_of": ("a token of a limiter", _PERMITS),
    "MemorySendChannel.send": ("room in a channel", _CONSUMERS),
}
"""Functions of asyncio, trio and anyio in which tasks wait for others, what for, and the remedy."""

_WAIT_FOR_WORKER = frozenset(("to_thread_run_sync", "AsyncIOBackend.run_sync_in_worker_thread"))
"""Functions of trio and of anyio that wait for a token of the limiter of a pool of threads."""

_LIBRARIES = (f"{PACKAGES}anyio/", f"{PACKAGES}trio/")


def findings(process: Process) -> list[Finding]:
    """Return the findings about the tasks of a process, the longest waits first."""
    groups: dict[tuple[int, str, str], list[TaskWaits]] = defaultdict(list)
    for waits in process.tasks:
        function = _function(process, waits)
        if function is not None:
            groups[waits.thread, function, str(process.program_line(waits.stack))].append(waits)
    least_ns = max(LEAST_NS, LEAST_SHARE * process.length_ns)
    found = [
        _finding(process, function, place, group)
        for (_, function, place), group in groups.items()
        if _waited_ns(process, group) >= least_ns
    ]
    return sorted(found, key=lambda finding: -int(finding.figures["task_ns"]))[:3]


def _function(process: Process, waits: TaskWaits) -> str | None:
    """Return in which of _FUNCTIONS a task waits; None for other waits."""
    if not waits.is_inner:
        return None
    for line in waits.stack[:2]:
        is_of_library = process.is_library(line) or any(library in line.file for library in _LIBRARIES)
        if is_of_library and line.function in _FUNCTIONS:
            return line.function
        if line.function != "Event.wait":
            break  # anyio's limiter waits for an event of asyncio
    return None


def _waited_ns(process: Process, group: list[TaskWaits]) -> int:
    """Return for how long at least one task waited, at least; stacks of one line may have waited at once."""
    return min(round(max(waits.waited_ns for waits in group) * _rate(process, group[0])), process.length_ns)


def _rate(process: Process, waits: TaskWaits) -> float:
    """Return for how much of the loop's idle time a sampled nanosecond stands."""
    return max(idle_ns(process, waits.thread) / max(waits.seen_ns, 1), 1.0)


def _finding(process: Process, function: str, place: str, group: list[TaskWaits]) -> Finding:
    what, remedy = _FUNCTIONS[function]
    is_for_worker = any(line.function in _WAIT_FOR_WORKER for line in group[0].stack[:8])
    waited_ns = _waited_ns(process, group)
    task_ns = round(sum(waits.task_ns for waits in group) * _rate(process, group[0]))
    most = max(waits.most for waits in group)
    label = process.label(group[0].thread)
    holder = _holder(process, group[0])
    details = ["their event loop is idle meanwhile, so no thread waits for a lock"]
    if holder:
        details.insert(0, f"meanwhile other tasks are at {holder}, and wait there")
    return Finding(
        "task-waits",
        SEVERE if most > 1 and waited_ns > SEVERE_SHARE * process.length_ns else NOTABLE,
        f"tasks wait for {what} at {place}: up to {most:,} at once, for {share(waited_ns, process.length_ns)} of the "
        f"run, {duration(task_ns)} in all",
        details,
        label,
        holder or place,
        {
            "most": most,
            "waited_ns": waited_ns,
            "task_ns": task_ns,
            "waits_at": place,
            "is_for_worker": is_for_worker,
        },
        Remedy(f"unsnarl will not help here: {remedy}"),
    )


def _holder(process: Process, waits: TaskWaits) -> str | None:
    """Return the line at which tasks wait that are further in a function of the waiters: one of them holds the lock."""
    for line in waits.stack:
        if process.is_library(line) or PACKAGES in line.file:
            continue
        times: dict[str, int] = defaultdict(int)
        for other in process.tasks:
            if other.thread == waits.thread and not other.is_inner and _is_further(other, line):
                times[str(process.program_line(other.stack))] += other.task_ns
        if times:
            return max(times, key=lambda place: times[place])
    return None


def _is_further(waits: TaskWaits, line: Location) -> bool:
    return any((own.file, own.function) == (line.file, line.function) and own.line > line.line for own in waits.stack)
