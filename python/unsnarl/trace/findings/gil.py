"""Findings about the GIL: convoys, long holds, and wake-ups that grow with the number of waiters.

A wait behind one C call is no convoy: no scheduler can end it, so it is part of the finding about the call alone.

Pure: a ``Process`` in, findings out. Where no rule applies, a finding says that the GIL is not the cause.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from unsnarl.trace.findings.account import is_recording
from unsnarl.trace.findings.dependence import depends_on
from unsnarl.trace.findings.finding import BY_DOCTOR, FINE, NOTABLE, SEVERE, Finding, Remedy, duration, of_life, share
from unsnarl.trace.model import RUNNING, LongHold, Pair, Process, Thread

CONVOY_WAITS = 5
"""The fewest waits behind other threads that make a pattern."""

CONVOY_MEDIAN_NS = 1_000_000
"""A hand-over takes microseconds: a median of milliseconds is a wait for another thread's slice."""

CONVOY_SHARE = 0.02
"""The least share of a thread's life spent in such waits."""

MOST_CONVOYS = 4
"""Convoys that are reported one by one."""

WAITING_SHARE = 0.05
"""The least share of the recording that all threads together waited for the GIL, to be reported."""

WAITING_NS = 20_000_000
"""The least waiting time to be reported where no other rule applies."""

BUSY_HAND_OVERS = 5000
"""The fewest hand-overs per second to be reported."""

LONG_HOLD_NS = 30_000_000
"""The shortest hold, with other threads waiting, to be reported."""

LONG_HOLD_INTERVALS = 3
"""Switch intervals through which a thread waits behind one C call, and not for the end of a slice."""

SHORT_NS = 1_000_000
"""The shortest hold that has a stack."""

MOST_LONG_HOLDS = 10

LISTED_HOLDS = 100
"""The most long holds that a summary lists (``MAX_LONG_HOLDS`` in crates/trace/src/summary.rs)."""

GROUP = 8
"""From so many threads with long holds at one line on, they lack processors."""

CROWD, CROWD_HOLDS = 100, 3
"""Among so many threads, fewer long holds of each at a line than this are those of threads without a processor."""


CERTAIN_NS = 100_000_000
"""A single hold that is shorter may be that of a thread without a processor, so it is not severe."""

FULL_WAITS = 20
"""Where several threads are CPU-bound, the GIL is full, and starting them takes some waits: a pattern has more."""

FULL_SHARE = 0.8
"""The share of the recording for which threads together held the GIL, from which on it is full."""

SQUARE_WAITERS = 8
"""The fewest waiters with which it can be seen whether each hand-over wakes all of them."""

SQUARE_SHARE = 0.2
"""Wake-ups per wait and waiter, from which on the growth counts as square."""

SQUARE_SEVERE = 0.3
"""The share of their lives that all threads together wait for the GIL, from which on square wake-ups are severe.

They happen also where many threads wait once, behind a thread without a processor.
"""

IDLE_SHARE = 0.4
"""The largest share of its life that a CPU-bound thread is blocked; time without a processor counts as blocked, too."""

HOLD_SHARE = 0.2
"""The shortest mean hold of a CPU-bound thread, as a share of the switch interval."""


def findings(process: Process) -> list[Finding]:
    """Return the findings about the GIL in a process."""
    full = full_gil(process)
    result = [*convoys(process), *full, *long_holds(process), *starved_holds(process), *square(process)]
    result += cpu_bound(process, result)
    return result or hand_overs(process) or gil_waits(process) or [no_contention(process)]


def is_cpu_bound(process: Process, thread: Thread) -> bool:
    """Tell whether a thread holds the GIL for a large part of a slice at a time, and rarely blocks."""
    life = sum(thread.totals_ns)
    idle = thread.on_lock_ns + thread.io_ns + thread.asleep_ns + thread.computing_ns
    mean_hold = thread.running_ns / max(thread.takes, 1)
    return life > 0 and idle <= IDLE_SHARE * life and mean_hold >= HOLD_SHARE * process.interval_ns


def convoys(process: Process) -> list[Finding]:
    """Find threads that wait for a whole slice of another thread whenever they return from a blocking call."""
    behind: dict[int, list[Pair]] = defaultdict(list)
    calls = [
        hold for line, group in _by_line(process).items() if not _is_starved(process, line, group) for hold in group
    ]
    for pair in process.pairs:
        own_calls = [hold for hold in calls if hold.thread == pair.holder]
        rest = _with_processor(process, _without_calls(process, pair, own_calls), own_calls)
        if rest.count > 0 and rest.total_ns > 0:
            behind[pair.waiter].append(rest)
    is_full = sum(is_cpu_bound(process, thread) for thread in process.threads) > 1
    sharers = sharers_of(process)
    result: list[Finding] = []
    for number, pairs in behind.items():
        thread = process.threads[number]
        is_starting = is_full or len(process.threads) >= CROWD
        if is_starting and sum(pair.count for pair in pairs) < max(FULL_WAITS, len(process.threads) // 10):
            continue
        if number in sharers:
            continue
        if not is_cpu_bound(process, thread) and _is_convoy(process, thread, pairs):
            is_served = depends_on(process, number, frozenset(pair.holder for pair in pairs))
            result.append(_convoy(process, thread, pairs, is_served=is_served))
    result.sort(key=lambda finding: -int(finding.figures["total_ns"]))
    if len(result) > MOST_CONVOYS:
        more = len(result) - MOST_CONVOYS
        words = "1 more thread waits" if more == 1 else f"{more} more threads wait"
        result[MOST_CONVOYS - 1].details.append(f"{words} in the same way")
    return result[:MOST_CONVOYS]


def _without_calls(process: Process, pair: Pair, calls: list[LongHold]) -> Pair:
    """Return the waits of a pair without those behind long C calls, which a scheduler cannot end."""
    if not calls:
        return pair
    if pair.median_ns >= LONG_HOLD_INTERVALS * process.interval_ns:
        return replace(pair, count=0, total_ns=0)
    waited_ns = sum(hold.waited_ns for hold in calls)
    return replace(pair, count=max(pair.count - len(calls), 0), total_ns=max(pair.total_ns - waited_ns, 0))


def _with_processor(process: Process, pair: Pair, calls: list[LongHold]) -> Pair:
    """Return the waits of a pair without those for a holder that had no processor, which a scheduler cannot end.

    On a busy machine the waiter lacks a processor as well, after the holder has dropped the GIL: it waits for no longer
    than the holder ran. A CPU-bound holder drops the GIL when it is asked to and has a processor, so the waiter pays
    for the switch interval before the request, as far as the holder had a processor in it; that is the bound where
    holds are too many to be listed. The pair is already without those behind long C calls.
    """
    holder = process.threads[pair.holder]
    lacked = [hold for hold in process.long_holds if hold.thread == pair.holder and hold.starved_ns]
    if not lacked:
        return pair
    running_ns = min(holder.running_ns, process.seen_life_ns(holder))
    ran_ns = max(running_ns - sum(hold.starved_ns for hold in lacked), 0)
    total_ns = pair.total_ns - sum(min(hold.starved_ns, hold.waited_ns) for hold in lacked if hold not in calls)
    if not is_cpu_bound(process, holder):
        total_ns = min(total_ns, ran_ns)
    elif len(process.long_holds) >= LISTED_HOLDS:
        total_ns = min(total_ns, pair.count * process.interval_ns * ran_ns // max(running_ns, 1))
    return replace(pair, total_ns=max(total_ns, 0))


def _is_convoy(process: Process, thread: Thread, pairs: list[Pair]) -> bool:
    count = sum(pair.count for pair in pairs)
    total = sum(pair.total_ns for pair in pairs)
    median = max(pairs, key=lambda pair: pair.count).median_ns
    least = CONVOY_SHARE * process.seen_life_ns(thread)
    return count >= CONVOY_WAITS and median >= CONVOY_MEDIAN_NS and total >= least


def _convoy(process: Process, thread: Thread, pairs: list[Pair], *, is_served: bool) -> Finding:
    count = sum(pair.count for pair in pairs)
    # No more than the thread waited: two holders may share one wait.
    total = min(sum(pair.total_ns for pair in pairs), thread.waiting_ns)
    worst = max(pairs, key=lambda pair: pair.total_ns)
    holder = process.label(worst.holder)
    others = f" and {len(pairs) - 1} others" if len(pairs) > 2 else " and another" if len(pairs) == 2 else ""
    held_at, came_from = process.line_of(worst.holder_node), process.line_of(worst.waiter_node)
    details = [
        f"`{holder}` held the GIL at {held_at}" if held_at else "",
        f"`{thread.label}` returned from a call at {came_from}" if came_from else "",
        f"longest wait {duration(max(pair.longest_ns for pair in pairs))}",
    ]
    life = process.seen_life_ns(thread)
    return Finding(
        "convoy",
        SEVERE if total > 0.1 * life and not is_served else NOTABLE,
        f"thread `{thread.label}` waited {duration(total / count)} each time behind thread `{holder}`{others}, "
        f"{count:,} times: {of_life(process, total, life)}",
        [line for line in details if line],
        thread.label,
        str(held_at) if held_at else None,
        {"count": count, "total_ns": total, "median_ns": worst.median_ns, "holder": holder},
        _served_remedy(holder) if is_served else _convoy_remedy(process, min(total, process.seen_ns)),
    )


def _convoy_remedy(process: Process, total_ns: int) -> Remedy:
    if process.is_scheduled:
        return Remedy("the scheduler is already active: the remaining waits are other threads' long calls", helps=False)
    return Remedy(
        "the GIL scheduler serves a thread that returns from a blocking call first",
        "unsnarl run",
        helps=True,
        saves_ns=total_ns,
    )


def _served_remedy(holder: str) -> Remedy:
    return Remedy(
        f"unsnarl will not help here: the thread waits for what `{holder}` does anyway, and would only begin to wait "
        f"sooner. Let `{holder}` compute less, or in more processes"
    )


def long_holds(process: Process) -> list[Finding]:
    """Find holds that a request to drop the GIL could not end: single calls into C."""
    result: list[Finding] = []
    for line, holds in _by_line(process).items():
        if not _is_starved(process, line, holds):
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


def _least_ns(process: Process) -> int:
    return max(LONG_HOLD_NS, 4 * process.interval_ns)


def _by_line(process: Process) -> dict[str, list[LongHold]]:
    """Return the long holds by their line, over all threads: those for which a processor was needed for so long."""
    result: dict[str, list[LongHold]] = defaultdict(list)
    for hold in process.long_holds:
        if hold.ran_ns >= _least_ns(process) and not is_recording(process, hold.node):
            result[_place(process, hold)].append(hold)
    return result


def _place(process: Process, hold: LongHold) -> str:
    return str(process.line_of(hold.node) or "an unknown line")


def _is_starved(process: Process, line: str, holds: list[LongHold]) -> bool:
    """Tell whether threads lacked a processor: most of their holds at this line end on request.

    A C call takes as long each time. Threads in a loop of Python without a processor hold the GIL for long now and
    then, at a line at which they drop the GIL within a switch interval or two otherwise. So do threads of which
    there are many, each with a long hold or two.
    """
    threads = {hold.thread for hold in holds}
    if len(threads) >= GROUP or (len(process.threads) >= CROWD and len(holds) < CROWD_HOLDS * len(threads)):
        return True
    short = 0
    for number in threads:
        for _, length_ns, state, node in process.threads[number].stretches:
            if state == RUNNING and SHORT_NS <= length_ns < LONG_HOLD_INTERVALS * process.interval_ns and node:
                short += str(process.line_of(node)) == line
    return short >= len(holds)


def starved_holds(process: Process) -> list[Finding]:
    """Report long holds of threads that lacked a processor, as one finding for all of them."""
    least_ns = _least_ns(process)
    lines = _by_line(process)
    calls = {line for line, group in lines.items() if not _is_starved(process, line, group)}
    holds = [hold for line, group in lines.items() if line not in calls for hold in group]
    starved = [hold for hold in process.long_holds if hold.ran_ns < least_ns <= hold.length_ns]
    holds += [hold for hold in starved if _place(process, hold) not in calls]
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


def is_full(process: Process) -> bool:
    """Tell whether the GIL was held for nearly all of the time, by several threads."""
    running = sum(thread.running_ns for thread in process.threads)
    return running >= FULL_SHARE * process.length_ns and len(process.threads) > 1


def sharers_of(process: Process) -> set[int]:
    """Return the numbers of the threads that fill the GIL alike: no order among them serves all sooner.

    Where a thread is CPU-bound, the others may be served before it, so there are none.
    """
    if not is_full(process) or any(is_cpu_bound(process, thread) for thread in process.threads):
        return set()
    running = sum(thread.running_ns for thread in process.threads)
    least = running / (2 * len(process.threads))
    return {number for number, thread in enumerate(process.threads) if thread.running_ns >= least}


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
