"""Findings about locks: contended locks, locks held across I/O, and futex storms.

A thread that waits for work (``Queue.get``, ``Event.wait``, ``Thread.join``) blocks on a lock as well; such
waits are recognised by the standard library's function on the stack. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace import lock_lines
from unsnarl.trace.findings import shared_locks
from unsnarl.trace.findings.finding import BY_DOCTOR, FINE, NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import COMPUTING, IN_IO, LOCK, SLEEPING, LockWaits, Process

WAITS_FOR_WORK = frozenset(
    (
        "wait",
        "wait_for",
        "get",
        "join",
        "_wait_for_tstate_lock",
        "_shutdown",
        "_worker",
        "result",
        "as_completed",
        "Pool._handle_tasks",
        "_handle_tasks",
    )
)
"""Functions of the standard library that block until there is something to do."""

CONTENDED_SHARE = 0.02
"""The least share of the recorded time that all threads together were blocked on one lock."""

CONTENDED_NS = 20_000_000

SEVERE_SHARE = 0.2
"""The share from which on contention is severe, unless most of the lines are guessed."""

STORM_PER_S = 4000
"""Lock waits per second from which on their system calls cost more than the work they protect."""

STORM_WAITS = 2000

LEFT_OUT = 5
"""The fewest waits without a stack that are more than one thread's that happened to have no processor."""

POLLING_WAITS = 100
"""The fewest waits that time out, to be polling."""

POLLING_SHARE = 0.8
"""The least share of a line's waits that time out."""

POLLING_NS = 50_000_000
"""The longest mean wait: a longer timeout costs nothing."""

MUTUAL_PERMILLE = 800
"""The least part of its hold that a holder waits for a lock itself, to be one of two that wait for each other."""

_PATCHED = ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "Queue", "LifoQueue", "PriorityQueue")
"""The classes that ``unsnarl.patch`` replaces; it replaces neither Lock nor RLock."""

_STATES = (
    "running Python",
    "waiting for the GIL",
    "blocked on another lock",
    "in I/O",
    "asleep",
    "in C code without the GIL",
)


IDLE_WORKER = ("trio/_core/_thread_cache.py", "WorkerThread._work")
"""Where a thread of trio's waits for its next call, by acquiring a lock that is released for it."""


def findings(process: Process) -> list[Finding]:
    """Return the findings about the locks of a process."""
    result = [*contended(process), *polling(process), *unplaced(process), *storm(process)]
    return result or ([] if _may_be_locks(process) else [no_contention(process)])


def _may_be_locks(process: Process) -> bool:
    """Tell whether threads were blocked for long where it is unknown on what, or on locks of C code.

    Waits without a stack may be for work or for locks, however few they are.
    """
    placed = sum(
        waits.total_ns
        for line, group in by_line(process)
        for waits in group
        if line != "an unknown line" and not is_polled(group)
    )
    left_out = sum(waits.left_out_ns for waits in process.locks if not waits.wait_node)
    least = _least_ns(process)
    return placed + left_out >= least or shared_locks.in_c_ns(process) >= least


def is_for_work(process: Process, node: int) -> bool:
    """Tell whether a thread waits for work, and not for a lock or a permit that another thread holds."""
    if node in process.scarce:
        return False
    if node in process.handed:
        return True
    for line in process.stack(node):
        if line.function == IDLE_WORKER[1] and line.file.endswith(IDLE_WORKER[0]):
            return True
        if not process.is_library(line):
            return False
        if line.function.rpartition(".")[2] in WAITS_FOR_WORK:
            return True
    return False


def by_line(process: Process, *, for_work: bool = False) -> list[tuple[str, list[LockWaits]]]:
    """Return the lock waits by the waiting line, the longest total first."""
    groups: dict[str, list[LockWaits]] = defaultdict(list)
    for waits in process.locks:
        if for_work or not is_for_work(process, waits.wait_node):
            groups[str(process.line_of(waits.wait_node) or "an unknown line")].append(waits)
    return sorted(groups.items(), key=lambda item: -sum(waits.total_ns for waits in item[1]))


def is_patched(process: Process, node: int) -> bool:
    """Tell whether the wait at a stack is within a class that ``--patch`` replaces."""
    stack = process.stack(node)
    return bool(stack) and process.is_library(stack[0]) and stack[0].function.partition(".")[0] in _PATCHED


def is_polled(group: list[LockWaits]) -> bool:
    """Tell whether nearly all waits at a line end with their timeout, soon."""
    count, timeouts = sum(waits.count for waits in group), sum(waits.timeouts for waits in group)
    total = sum(waits.total_ns for waits in group)
    return timeouts >= max(POLLING_WAITS, POLLING_SHARE * count) and total <= POLLING_NS * count


def polling(process: Process) -> list[Finding]:
    """Find waits with short timeouts in a loop: the thread wakes up for nothing."""
    result: list[Finding] = []
    for line, group in by_line(process, for_work=True):
        if not is_polled(group) or not process.seen_ns:
            continue
        count, timeouts = sum(waits.count for waits in group), sum(waits.timeouts for waits in group)
        per_s = timeouts / (process.seen_ns / 1e9)
        label = process.label(group[0].waiter)
        mean = duration(sum(waits.total_ns for waits in group) / count)
        result.append(
            Finding(
                "polling",
                NOTABLE,
                f"polling: at {line} {timeouts:,} of {count:,} waits timed out, {per_s:,.0f} a second, "
                f"after {mean} each",
                [f"thread `{label}` wakes up, takes the GIL and finds nothing"],
                label,
                line,
                {"count": count, "timeouts": timeouts, "per_s": round(per_s)},
                Remedy(
                    "wait without a timeout, or with a long one, and wake the thread: a sentinel, an Event, shutdown()"
                ),
            )
        )
    return result


def contended(process: Process) -> list[Finding]:
    """Find locks on which threads are blocked for long, and the lines that held them."""
    result: list[Finding] = []
    for line, group in by_line(process)[:10]:
        total = sum(waits.total_ns for waits in group)
        # Waits too short for a stack have no line; many of them are a futex storm.
        if total >= _least_ns(process) and line != "an unknown line" and not is_polled(group):
            result.append(_contended(process, line, group, total))
    return result


def _least_ns(process: Process) -> float:
    return max(CONTENDED_NS, CONTENDED_SHARE * process.seen_ns)


def unplaced(process: Process) -> list[Finding]:
    """Report waits whose lines are unknown because too many stacks were due at once."""
    without = (waits for waits in process.locks if not waits.wait_node and waits.left_out)
    groups = [waits for waits in without if not _waits_for_work(process, waits)]
    count, total = sum(waits.left_out for waits in groups), sum(waits.left_out_ns for waits in groups)
    # Without stacks, a wait for work cannot be distinguished from a wait for a lock.
    if not process.nodes or total < _least_ns(process) or count < LEFT_OUT:
        return []
    label = process.label(max(groups, key=lambda waits: waits.left_out_ns).waiter)
    return [
        Finding(
            "lock-waits",
            NOTABLE,
            f"threads were blocked on locks {_times(count)}, {duration(total)} in all, at lines that were not recorded",
            [
                f"thread `{label}` among others; it is unknown whether they waited for locks or for work",
                "stacks were left out to keep the cost low",
            ],
            label,
            None,
            {"count": count, "total_ns": total},
        )
    ]


def _waits_for_work(process: Process, left_out: LockWaits) -> bool:
    """Tell whether all waits of a thread that have a stack are for work: those without one are taken for such, too.

    So are they in the account of the thread's time, if they are the smaller part. A thread that starts many others
    waits for a moment for each.
    """
    placed = [(node, time_ns) for node, time_ns in process.stacks_in.get((left_out.waiter, LOCK), ()) if node]
    is_larger = sum(time_ns for _, time_ns in placed) >= left_out.left_out_ns
    return bool(placed) and is_larger and all(is_for_work(process, node) for node, _ in placed)


def _contended(process: Process, line: str, group: list[LockWaits], total: int) -> Finding:
    worst = max(group, key=lambda waits: (waits.releaser is not None, waits.total_ns))
    count, guessed = sum(waits.count for waits in group), sum(waits.guessed for waits in group)
    holder = process.label(worst.releaser)
    held_at = process.line_of(worst.holder_node) or process.line_of(worst.release_node)
    state = worst.holder_state
    if state == IN_IO and process.lacks_processor(worst.releaser, worst.holder_node):
        state = COMPUTING
    is_idle = state in (IN_IO, SLEEPING) and worst.holder_permille >= 500
    shared = _shared_object(process, worst)
    if worst.wait_node in process.scarce:
        is_lost = 2 * sum(waits.timeouts for waits in group) >= count
        what, remedy = "a semaphore has no permit left", _LOST_PERMITS if is_lost else _PERMITS
    elif _is_import(process, worst.wait_node):
        what, remedy = "a module is being imported by another thread", _IMPORTED
    elif _is_mutual(process, group):
        what, remedy = "threads wait for each other's locks", _ONE_ORDER
    elif shared:
        what, remedy = f"threads share `{shared}`, which has a lock of its own in C code", shared_locks.ONE_EACH
    else:
        what = (
            f"a lock is held across {'a sleep' if state == SLEEPING else 'I/O'}" if is_idle else "a lock is contended"
        )
        remedy = _lock_remedy(state if is_idle else None, is_replaced=is_patched(process, worst.wait_node))
    is_severe = total > SEVERE_SHARE * process.seen_ns and 2 * guessed <= count
    return Finding(
        "contended-lock",
        SEVERE if is_severe else NOTABLE,
        f"{what}: thread `{process.label(worst.waiter)}` waits at {line}, {_times(count)}, "
        f"{duration(total)} in all, up to {duration(max(waits.longest_ns for waits in group))}",
        _about_holder(process, worst, f"{_STATES[state]}{f' at {held_at}' if held_at else ''}", guessed),
        process.label(worst.waiter),
        str(held_at) if held_at else line,
        {"count": count, "total_ns": total, "waits_at": line, "holder": holder, "across_io": int(is_idle)},
        remedy,
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _about_holder(process: Process, worst: LockWaits, activity: str, guessed: int) -> list[str]:
    holder = process.label(worst.releaser)
    details: list[str] = []
    if worst.releaser is not None:
        details.append(f"meanwhile `{holder}` held it, mostly {activity}")
    released_at = process.line_of(worst.release_node)
    if released_at:
        details.append(f"`{holder}` released it at {released_at}")
    if guessed:
        details.append(
            f"{guessed:,} of the waits had no stack: they are counted at the line of the thread's previous wait"
        )
    return details


_PERMITS = Remedy(
    "unsnarl will not help here: hold a permit for less time, or allow more permits if what they guard has room"
)


_LOST_PERMITS = Remedy(
    "unsnarl will not help here: most waits end with their timeout, so a permit may never be given back. Release it "
    "also where the work fails (`with semaphore:`), hold it for less time, or allow more permits"
)


_IMPORTED = Remedy(
    "unsnarl will not help here: import the module before the threads start, and wait for nothing while it is imported"
)


_ONE_ORDER = Remedy(
    "unsnarl will not help here: most waits end with their timeout, while the holder waits for a lock as well. Acquire "
    "the locks in one order everywhere, or release the first before the second"
)


def _shared_object(process: Process, waits: LockWaits) -> str:
    """Return the object that the waiter and the holder both call, and that locks in C code: neither line has a lock."""
    lines = [
        next(iter(process.stack(node)), None) for node in (waits.wait_node, waits.holder_node or waits.release_node)
    ]
    if any(line is None or process.is_library(line) or lock_lines.acquires(line.file, line.line) for line in lines):
        return ""
    objects = [lock_lines.shared_objects(line.file, line.line) for line in lines if line is not None]
    return min(objects[0] & objects[1], default="")


def _is_import(process: Process, node: int) -> bool:
    """Tell whether a thread waits for the lock of a module that another thread imports."""
    return any(line.function.startswith("_ModuleLock") for line in process.stack(node)[:4])


def _is_mutual(process: Process, group: list[LockWaits]) -> bool:
    """Tell whether most waits end with their timeout, while the holder waits for a lock itself, likewise.

    Threads do so that acquire two locks in different orders.
    """

    def is_timed(waits: list[LockWaits]) -> bool:
        timeouts, count = sum(entry.timeouts for entry in waits), sum(entry.count for entry in waits)
        return timeouts > 0 and 2 * timeouts >= count and not is_polled(waits)

    places = {place for place, waits in by_line(process) if is_timed(waits)}
    return is_timed(group) and any(
        waits.releaser is not None
        and waits.holder_state == LOCK
        and waits.holder_permille >= MUTUAL_PERMILLE
        and str(process.line_of(waits.holder_node)) in places
        for waits in group
    )


def _lock_remedy(idle: int | None, *, is_replaced: bool) -> Remedy:
    """Return the remedy; ``idle`` is the state in which the holder did not compute, if there is one."""
    if idle == SLEEPING:
        return Remedy(
            "unsnarl will not help here: sleep outside of the lock. A rate limiter takes its turn under the lock, "
            "and sleeps until then without it"
        )
    if idle is not None:
        return Remedy("unsnarl will not help here: do the I/O outside of the lock, or use a lock for each resource")
    if not is_replaced:
        return Remedy(
            "unsnarl will not help here: it replaces no Lock and no RLock. Hold the lock shorter, or split it"
        )
    return Remedy(
        f"hold the lock shorter or split it; native primitives pass it on with fewer wake-ups: {BY_DOCTOR}",
        "unsnarl run --patch",
        helps=True,
    )


def storm(process: Process) -> list[Finding]:
    """Find lock waits so frequent that their system calls are the main cost."""
    count = sum(thread.lock_waits for thread in process.threads)
    per_s = count / (process.length_ns / 1e9) if process.length_ns else 0.0
    if per_s < STORM_PER_S or count < STORM_WAITS:
        return []
    by_waiting_line = by_line(process, for_work=True)
    named = [(line, group) for line, group in by_waiting_line if line != "an unknown line"]
    if any(is_polled(group) for _, group in by_waiting_line):
        return []  # waits that time out: they are reported as polling
    worst = max(named, key=lambda item: sum(waits.count for waits in item[1]), default=None)
    line = worst[0] if worst else "an unknown line"
    thread = max(process.threads, key=lambda thread: thread.lock_waits)
    takes = sum(thread.takes for thread in process.threads)
    return [
        Finding(
            "futex-storm",
            SEVERE if per_s > 4 * STORM_PER_S else NOTABLE,
            f"futex storm: {per_s:,.0f} times a second a thread blocks on a lock and is woken, mostly at {line}",
            [
                f"{count:,} waits for locks, at least two futex calls each; the GIL was taken {takes:,} times",
                f"thread `{thread.label}` blocked most often, {thread.lock_waits:,} times",
            ],
            thread.label,
            line,
            {"per_s": round(per_s), "count": count},
            _storm_remedy(process, worst[1] if worst else []),
        )
    ]


def _storm_remedy(process: Process, group: list[LockWaits]) -> Remedy:
    if any(is_patched(process, waits.wait_node) for waits in group):
        return Remedy(
            f"pass more at a time (batches); native queues and conditions need fewer wake-ups: {BY_DOCTOR}",
            "unsnarl run --patch",
            helps=True,
        )
    if any(waits.wait_node in process.handed for waits in group):
        return Remedy("pass more at a time: batches instead of single items")
    return Remedy("take the lock less often: do more in one hold (batches), or give each thread a part of its own")


def no_contention(process: Process) -> Finding:
    """Report that locks are not the cause."""
    blocked = sum(waits.total_ns for _, group in by_line(process) for waits in group)
    return Finding(
        "no-lock-contention",
        FINE,
        f"locks are not the cause: threads were blocked for {duration(blocked)} on locks that others held "
        f"({share(blocked, process.seen_ns)} of the time)",
        figures={"blocked_ns": blocked},
    )
