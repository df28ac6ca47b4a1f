"""Findings about threads that ask again and again instead of waiting: without a pause, or with short sleeps.

A thread that makes short system calls without a pause asks as well, or does little by each of them.
Waits with short timeouts are in ``locks``. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace import asking_lines
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, of_life, share
from unsnarl.trace.model import IN_IO, LOCK, PAUSE, RUNNING, SLEEPING, Process

ASKS = frozenset(
    (
        "Queue.get_nowait",
        "Queue.empty",
        "Queue.full",
        "Queue.put_nowait",
        "Event.is_set",
        "Future.done",
        "Thread.is_alive",
        "Popen.poll",
        "BaseProcess.is_alive",
        "EpollSelector.select",
        "_PollLikeSelector.select",
        "SelectSelector.select",
    )
)
"""Functions of the standard library that return at once whether there is something to do.

A selector does so with a timeout of 0, and computes for long only then.
"""

ASKING_SHARE = 0.4
"""The least share of a thread's time with the GIL that it spends in one of them."""

LEAST_NS = 100_000_000
"""The least time with the GIL of a thread that spins, and the least time asleep of one that polls."""

CALLS, CALLS_PER_S = 100_000, 100_000
"""The fewest short calls, and per second of the thread's life; a busy machine makes a million a second this few."""

CALLING_SHARE = 0.5
"""The least share of a thread's time with the GIL in the function that makes the calls."""

SLEEPS = 100
"""The fewest sleeps that are polling."""

SHORT_SLEEP_NS = 5_000_000
"""The longest mean sleep: waking up less often costs nothing."""

SLEEPING_SHARE = 0.2
"""The least share of a thread's life that it sleeps there."""


def findings(process: Process) -> list[Finding]:
    """Return the findings about threads that spin or poll."""
    return [*spinning(process), *short_calls(process), *short_sleeps(process), *pauses(process)]


def spinning(process: Process) -> list[Finding]:
    """Find threads that compute for long and do little but ask whether there is something to do."""
    running: dict[int, int] = defaultdict(int)
    asking: dict[int, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for number, state, node, time_ns in process.stacks:
        if state == RUNNING:
            running[number] += time_ns
            function = _asks(process, node)
            if function is not None:
                asking[number][function, str(process.line_of(node))] += time_ns
    result: list[Finding] = []
    for number, times in asking.items():
        time_ns, whole = sum(times.values()), running[number]
        if whole < LEAST_NS or 2 * whole < sum(process.threads[number].totals_ns) or time_ns < ASKING_SHARE * whole:
            continue
        function, place = max(times, key=lambda key: times[key])
        label = process.label(number)
        result.append(
            Finding(
                "spinning",
                SEVERE if 2 * whole > process.length_ns else NOTABLE,
                f"thread `{label}` spins: it asks again and again without a pause, by `{function}` at {place}, "
                f"{share(time_ns, whole)} of its time with the GIL",
                [f"it held the GIL for {duration(whole)}, which other threads can then not use"],
                label,
                place,
                {"asking_ns": time_ns, "running_ns": whole, "in_own_loop": int(function not in ASKS)},
                Remedy(
                    "unsnarl will not help here: block instead of asking. `get()`, `wait()`, `result()`, `join()`, "
                    "`acquire()` and a selector without a timeout return as soon as there is something to do; until a "
                    "time, sleep"
                ),
            )
        )
    return result


def _asks(process: Process, node: int) -> str | None:
    """Return the function, or the condition in the program's source, by which a thread asks at a stack."""
    for line in process.stack(node):
        if not process.is_library(line):
            return asking_lines.asked(line.file, line.line) or None
        if line.function in ASKS:
            return line.function
    return None


def short_calls(process: Process) -> list[Finding]:
    """Find threads that make short calls without a pause, each of which releases the GIL and takes it again."""
    result: list[Finding] = []
    for number, thread in enumerate(process.threads):
        life = sum(thread.totals_ns)
        calls = thread.takes - thread.lock_waits - thread.forced_drops
        per_s = calls / (life / 1e9) if life else 0.0
        if calls < CALLS or per_s < CALLS_PER_S:
            continue
        place, part = _usual_place(process, number, RUNNING)
        if place is None or part < CALLING_SHARE:
            continue
        result.append(
            Finding(
                "short-calls",
                NOTABLE,
                f"thread `{thread.label}` makes {calls:,} short calls, {per_s:,.0f} a second, mostly at {place}",
                ["each of them releases the GIL and takes it again: it asks without a pause, or does little at a time"],
                thread.label,
                place,
                {"calls": calls, "per_s": round(per_s)},
                Remedy(
                    "unsnarl will not help here: where the call finds nothing to do, block, or wait in a selector; "
                    "where it does little, do more by one call (a buffer, a batch)"
                ),
            )
        )
    return result


def _usual_place(process: Process, number: int, state: int) -> tuple[str | None, float]:
    """Return the line at which a thread is most in a state, and the share of its function."""
    functions: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for node, time_ns in process.stacks_in.get((number, state), ()):
        line = process.line_of(node)
        if line is not None:
            functions[line.file, line.function][str(line)] += time_ns
    if not functions:
        return None, 0.0
    lines = max(functions.values(), key=lambda lines: sum(lines.values()))
    whole = sum(sum(lines.values()) for lines in functions.values())
    return max(lines, key=lambda place: lines[place]), sum(lines.values()) / max(whole, 1)


def short_sleeps(process: Process) -> list[Finding]:
    """Find threads that sleep shortly, many times: they look for something in between. One finding a line."""
    by_place: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, thread in enumerate(process.threads):
        if _does_work(process, number):
            continue
        sleeps: dict[str, list[int]] = defaultdict(list)
        for _, length_ns, state, node in thread.stretches:
            if state == SLEEPING:
                sleeps[str(process.line_of(node)) if node else ""].append(length_ns)
        without = sleeps.pop("", [])
        if len(without) >= SLEEPS:
            # Sleeps that are too short for a stack of their own, but have been sampled.
            sleeps[_usual_place(process, number, SLEEPING)[0] or "an unknown line"] += without
        least = max(LEAST_NS, SLEEPING_SHARE * process.seen_life_ns(thread))
        for place, lengths in sleeps.items():
            total, count = sum(lengths), len(lengths)
            if count >= SLEEPS and least <= total <= SHORT_SLEEP_NS * count:
                by_place[place].append((count, total, number))
    found = [_short_sleeps(process, place, sorted(sleepers, reverse=True)) for place, sleepers in by_place.items()]
    return sorted(found, key=lambda finding: -int(finding.figures["count"]))[:3]


def _does_work(process: Process, number: int) -> bool:
    """Tell whether a thread that sleeps often works in between: by I/O or waits that last, for others, or by computing.

    It paces itself, as a producer or a server with a pause does. What only looks whether there is something to do makes
    calls that are too short for a record, and ends no other thread's wait.
    """
    sleeps = blocked = asleep_ns = running_ns = since_ns = 0
    is_blocked = False
    for _, length_ns, state, _ in process.threads[number].stretches:
        if state == SLEEPING:
            # Only what lies between two sleeps counts.
            running_ns += since_ns if sleeps else 0
            blocked += is_blocked
            sleeps, asleep_ns, since_ns, is_blocked = sleeps + 1, asleep_ns + length_ns, 0, False
        elif state == RUNNING:
            since_ns += length_ns
        is_blocked |= state in (IN_IO, LOCK)
    ended = sum(waits.count for waits in process.locks if waits.releaser == number and waits.waiter != number)
    return 2 * max(blocked, ended) > sleeps or running_ns > asleep_ns


def _short_sleeps(process: Process, place: str, sleepers: list[tuple[int, int, int]]) -> Finding:
    count, total, number = sleepers[0]
    label, life = process.label(number), process.seen_life_ns(process.threads[number])
    others = len(sleepers) - 1
    details = (
        [f"so do {others:,} more threads there" if others > 1 else "so does another thread there"] if others else []
    )
    return Finding(
        "polling",
        NOTABLE,
        f"polling: at {place} thread `{label}` sleeps {count:,} times for {duration(total / count)} "
        f"each, {of_life(process, total, life)}",
        [*details, "the thread wakes up, takes the GIL, and sleeps again"],
        label,
        place,
        {"count": count, "total_ns": total, "threads": len(sleepers)},
        Remedy("wait for the event itself (an Event, a Condition, a queue, a file descriptor), or sleep for longer"),
    )


def pauses(process: Process) -> list[Finding]:
    """Find threads that pause in C code for long, as SQLite does while a database is locked."""
    times: dict[tuple[int, str], int] = defaultdict(int)
    for waits in process.peers:
        if waits.peer != PAUSE or not waits.node:
            continue
        whole = sum(other.count for other in process.peers if (other.thread, other.node) == (waits.thread, waits.node))
        spent = sum(ns for node, ns in process.stacks_in.get((waits.thread, IN_IO), ()) if node == waits.node)
        times[waits.thread, str(process.line_of(waits.node))] += spent * waits.count // whole
    result: list[Finding] = []
    for (number, place), total in times.items():
        life = process.seen_life_ns(process.threads[number])
        if total >= max(LEAST_NS, SLEEPING_SHARE * life):
            label = process.label(number)
            result.append(
                Finding(
                    "polling",
                    NOTABLE,
                    f"polling: thread `{label}` pauses in C code at {place} for {duration(total)}, "
                    f"{of_life(process, total, life)}",
                    ["SQLite does so, again and again, while another connection has locked the database"],
                    label,
                    place,
                    {"total_ns": total},
                    Remedy(
                        "unsnarl will not help here: make what the call waits for shorter (a transaction that stays "
                        "open), or let one thread do it for all"
                    ),
                )
            )
    return result
