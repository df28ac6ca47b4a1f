"""Findings about the GIL: long holds, a full GIL, and wake-ups that grow with the number of waiters.

Pure: a ``Process`` in, findings out. Where no rule applies, a finding says that the GIL is not the cause.
"""

from __future__ import annotations

from unsnarl.trace.findings import convoys
from unsnarl.trace.findings.finding import BY_DOCTOR, FINE, NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.findings.holders import by_line, is_cpu_bound, is_starved, least_ns, needs_long, place_of, sharers_of
from unsnarl.trace.model import LongHold, Process

WAITING_SHARE = 0.05
"""The least share of the recording that all threads together waited for the GIL, to be reported."""

WAITING_NS = 20_000_000
"""The least waiting time to be reported where no other rule applies."""

BUSY_HAND_OVERS = 5000
"""The fewest hand-overs per second to be reported."""

MOST_LONG_HOLDS = 10

CERTAIN_NS = 100_000_000
"""A single hold that is shorter may be that of a thread without a processor, so it is not severe."""

SQUARE_WAITERS = 8
"""The fewest waiters with which it can be seen whether each hand-over wakes all of them."""

SQUARE_SHARE = 0.2
"""Wake-ups per wait and waiter, from which on the growth counts as square."""

SQUARE_SEVERE = 0.3
"""The share of their lives that all threads together wait for the GIL, from which on square wake-ups are severe.

They happen also where many threads wait once, behind a thread without a processor.
"""


def findings(process: Process) -> list[Finding]:
    """Return the findings about the GIL in a process."""
    full = full_gil(process)
    result = [*convoys.findings(process), *full, *long_holds(process), *starved_holds(process), *square(process)]
    result += cpu_bound(process, result)
    return result or hand_overs(process) or gil_waits(process) or [no_contention(process)]


def long_holds(process: Process) -> list[Finding]:
    """Find holds that a request to drop the GIL could not end: single calls into C."""
    result: list[Finding] = []
    for line, holds in by_line(process).items():
        if not is_starved(process, line, holds):
            result.append(_long_hold(process, line, holds))
    return result[:MOST_LONG_HOLDS]


def _long_hold(process: Process, line: str, holds: list[LongHold]) -> Finding:
    longest = max(holds, key=lambda hold: hold.length_ns)
    label = process.label(longest.thread)
    others = len({hold.thread for hold in holds}) - 1
    who = f"thread `{label}`" + (f" and {others} {'other' if others == 1 else 'others'}" if others else "")
    times = f", {len(holds)} times" if len(holds) > 1 else ""
    return Finding(
        "long-hold",
        SEVERE if len(holds) > 1 or longest.length_ns >= CERTAIN_NS else NOTABLE,
        f"{who} held the GIL for {'up to ' if len(holds) > 1 else ''}{duration(longest.length_ns)} at a time{times}, "
        f"at {line}",
        [
            waited_through(longest),
            "the thread did not drop the GIL on request: it was in one call into C",
            *([f"the thread had no processor for {duration(longest.starved_ns)} of it"] if longest.starved_ns else []),
        ],
        label,
        line,
        {"length_ns": longest.length_ns, "count": len(holds), "waited_ns": longest.waited_ns, "saves_ns": 0},
        Remedy(
            "unsnarl will not help here: no scheduler can interrupt a C call. Split the call, "
            "use a library that releases the GIL, or move the call to a process"
        ),
    )


def starved_holds(process: Process) -> list[Finding]:
    """Report long holds of threads that lacked a processor, as one finding for all of them."""
    least = least_ns(process)
    lines = by_line(process)
    calls = {line for line, group in lines.items() if not is_starved(process, line, group)}
    holds = [hold for line, group in lines.items() if line not in calls for hold in group]
    starved = [hold for hold in process.long_holds if hold.length_ns >= least and not needs_long(process, hold)]
    holds += [hold for hold in starved if place_of(process, hold) not in calls]
    if not holds:
        return []
    longest = max(holds, key=lambda hold: hold.length_ns)
    times = "once" if len(holds) == 1 else f"{len(holds)} times"
    lacked = f"for {duration(longest.starved_ns)} of it" if longest.starved_ns else "meanwhile"
    return [
        Finding(
            "no-processor",
            FINE,
            f"{times}, a thread kept the GIL for up to {duration(longest.length_ns)}, but had no processor {lacked}: "
            "no call into C needed so long",
            ["the machine is busy with other programs, or has fewer processors than threads that compute"],
            process.label(longest.thread),
            None,
            {"count": len(holds), "longest_ns": longest.length_ns, "threads": len({hold.thread for hold in holds})},
        )
    ]


def waited_through(hold: LongHold) -> str:
    """Return in words how many waits fell into a hold."""
    if hold.victims == 1:
        return f"1 thread was blocked meanwhile ({duration(hold.waited_ns)})"
    return f"{hold.victims} waits of other threads fell into it, the longest {duration(hold.waited_ns)}"


def square(process: Process) -> list[Finding]:
    """Find wake-ups that grow with the number of waiters: n² wake-ups for n threads."""
    crowded = [group for group in process.wakeups if group.waiters_from >= SQUARE_WAITERS and group.waits >= 20]
    if not crowded:
        return []
    worst = max(crowded, key=lambda group: group.wakeups)
    waiters = worst.waiters / worst.waits
    per_wait = worst.wakeups / worst.waits
    if per_wait < SQUARE_SHARE * waiters:
        return []
    threads = max(process.threads, key=lambda thread: thread.wakeups)
    total_wakeups = sum(group.wakeups for group in process.wakeups)
    total_waits = sum(group.waits for group in process.wakeups)
    waiting = sum(thread.waiting_ns for thread in process.threads)
    is_severe = waiting >= SQUARE_SEVERE * sum(sum(thread.totals_ns) for thread in process.threads)
    return [
        Finding(
            "square",
            SEVERE if is_severe else NOTABLE,
            f"square: with {waiters:.0f} threads waiting for the GIL, each woke up {per_wait:.0f} times "
            "before it got the GIL",
            [
                "each waiter wakes up every switch interval: the work grows with the square of the threads",
                f"{total_wakeups:,} wake-ups for {total_waits:,} waits in all",
                f"thread `{threads.label}` woke up most often",
            ],
            threads.label,
            None,
            {"waiters": round(waiters, 1), "wakeups_per_wait": round(per_wait, 1)},
            Remedy("the scheduler wakes only the thread that gets the GIL next", "unsnarl run", helps=True),
        )
    ]


def cpu_bound(process: Process, others: list[Finding]) -> list[Finding]:
    """Report CPU-bound threads that share one GIL: no scheduler can make more of one processor."""
    threads = [thread for thread in process.threads if is_cpu_bound(process, thread)]
    waiting = sum(thread.waiting_ns for thread in threads)
    if len(threads) < 2 or waiting < WAITING_SHARE * process.length_ns:
        return []
    names = ", ".join(f"`{thread.label}`" for thread in threads[:4]) + (" …" if len(threads) > 4 else "")
    return [
        Finding(
            "cpu-bound",
            FINE if any(finding.kind == "convoy" for finding in others) else NOTABLE,
            f"{len(threads)} CPU-bound threads share one GIL: {names}",
            [f"together they waited {duration(waiting)} for the GIL: it is full, and more threads do no more work"],
            threads[0].label,
            None,
            {"threads": len(threads), "waiting_ns": waiting},
            Remedy(
                "unsnarl will not help here: the work is more than one interpreter does at a time. "
                "Use processes, sub-interpreters, a free-threaded build or C code that releases the GIL"
            ),
        )
    ]


def full_gil(process: Process) -> list[Finding]:
    """Find threads that fill the GIL together, though each of them often waits for something else."""
    sharers = [process.threads[number] for number in sorted(sharers_of(process))]
    waiting = sum(thread.waiting_ns for thread in sharers)
    if len(sharers) < 2 or waiting < WAITING_SHARE * process.length_ns:
        return []
    running = sum(thread.running_ns for thread in process.threads)
    most = max(sharers, key=lambda thread: thread.waiting_ns)
    return [
        Finding(
            "full-gil",
            NOTABLE,
            f"the GIL is full: {len(sharers)} threads held it for {share(running, process.length_ns)} of the time "
            f"together, and waited {duration(waiting)} for it: more threads do no more work",
            [f"thread `{most.label}` waited most: {duration(most.waiting_ns)}"],
            most.label,
            None,
            {"threads": len(sharers), "running_ns": running, "waiting_ns": waiting},
            Remedy(
                "unsnarl will not help here: the work is more than one interpreter does at a time. "
                "Use processes, sub-interpreters, a free-threaded build or C code that releases the GIL"
            ),
        )
    ]


def hand_overs(process: Process) -> list[Finding]:
    """Report what frequent hand-overs of the GIL cost, where no single wait is long."""
    waits = sum(thread.waits for thread in process.threads)
    waiting = sum(thread.waiting_ns for thread in process.threads)
    per_s = waits / (process.length_ns / 1e9) if process.length_ns else 0.0
    if per_s < BUSY_HAND_OVERS or waiting < WAITING_SHARE * process.length_ns:
        return []
    return [
        Finding(
            "hand-overs",
            NOTABLE,
            f"the GIL changes threads {per_s:,.0f} times a second, after {duration(waiting / waits)} of waiting each",
            [f"{duration(waiting)} of waiting in all: no single wait is long, but there are many"],
            None,
            None,
            {"per_s": round(per_s), "waiting_ns": waiting},
            Remedy("process more at a time: batches instead of single items"),
        )
    ]


def gil_waits(process: Process) -> list[Finding]:
    """Report waits for the GIL of which the records show no cause."""
    waiting = sum(thread.waiting_ns for thread in process.threads)
    if waiting < max(WAITING_NS, WAITING_SHARE * process.length_ns):
        return []
    most = max(process.threads, key=lambda thread: thread.waiting_ns)
    how_often = f", in {most.waits:,} waits" if most.waits > 1 else ""
    details = [f"thread `{most.label}` waited most: {duration(most.waiting_ns)}{how_often}"]
    if process.records_from_ns:
        details.append(
            f"only the last {duration(process.seen_ns)} are still recorded: most waits may have been earlier"
        )
    return [
        Finding(
            "gil-waits",
            NOTABLE,
            f"threads waited {duration(waiting)} for the GIL in all "
            f"({share(waiting, process.length_ns)} of the time), in no known pattern",
            details,
            most.label,
            None,
            {"waiting_ns": waiting},
            Remedy("a larger file holds more: `unsnarl trace --size 256`")
            if process.records_from_ns
            else Remedy(f"the scheduler may help: {BY_DOCTOR}"),
        )
    ]


def no_contention(process: Process) -> Finding:
    """Report that the GIL is not the cause."""
    waiting = sum(thread.waiting_ns for thread in process.threads)
    running = sum(thread.running_ns for thread in process.threads)
    return Finding(
        "no-gil-contention",
        FINE,
        f"the GIL is not the cause: threads waited {duration(waiting)} for it, and ran {duration(running)}",
        figures={"waiting_ns": waiting, "running_ns": running},
        remedy=Remedy("unsnarl's scheduler will not help here: threads hardly wait for the GIL"),
    )
