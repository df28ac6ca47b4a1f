"""Convoys: threads that wait for a slice of another thread whenever they return from a blocking call.

A wait behind one C call is no convoy: no scheduler can end it, so it is part of the finding about the call alone.
Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from unsnarl.trace import thread_groups
from unsnarl.trace.findings.dependence import depends_on
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, of_life, share
from unsnarl.trace.findings.holders import (
    CROWD,
    LONG_HOLD_INTERVALS,
    Holds,
    by_line,
    is_cpu_bound,
    is_starved,
    sharers_of,
)
from unsnarl.trace.model import LongHold, Pair, Process, Thread

CONVOY_WAITS = 5
"""The fewest waits behind other threads that make a pattern."""

CONVOY_MEDIAN_NS = 1_000_000
"""A hand-over takes microseconds: a median of milliseconds is a wait for another thread's slice."""

CONVOY_SHARE = 0.02
"""The least share of a thread's life spent in such waits."""

BEYOND_INTERVAL = 1.5
"""Switch intervals for which a holder usually keeps the GIL, from which on it does not drop it on request."""

MOST_CONVOYS = 4
"""Convoys that are reported one by one."""

LISTED_HOLDS = 100
"""The most long holds that a summary lists (``MAX_LONG_HOLDS`` in crates/trace/src/summary.rs)."""

FULL_WAITS = 20
"""Where several threads are CPU-bound, the GIL is full, and starting them takes some waits: a pattern has more."""


def findings(process: Process) -> list[Finding]:
    """Find threads that wait for a whole slice of another thread whenever they return from a blocking call."""
    holds = Holds(process)
    result = [_finding(process, convoys, holds) for convoys in _alike(process, _convoys(process))]
    result.sort(key=lambda finding: -int(finding.figures["total_ns"]))
    if len(result) > MOST_CONVOYS:
        more = sum(int(finding.figures["threads"]) for finding in result[MOST_CONVOYS:])
        words = "1 more thread waits" if more == 1 else f"{more} more threads wait"
        result[MOST_CONVOYS - 1].details.append(f"{words} in the same way")
    return result[:MOST_CONVOYS]


@dataclass(frozen=True, slots=True)
class _Convoy:
    """A thread that waits behind others.

    Attributes:
        number: that of the thread.
        pairs: its waits, by holder.
        is_served: whether it waits for what the holders do anyway.
    """

    number: int
    pairs: list[Pair]
    is_served: bool

    @property
    def worst(self) -> Pair:
        """Return the waits behind the holder that it waited for longest."""
        return max(self.pairs, key=lambda pair: pair.total_ns)

    def saved_ns(self, process: Process, holds: Holds) -> int:
        """Return the most that a scheduler can save of these waits.

        It asks a holder at once, not after a switch interval; what the holder then does without dropping the GIL, in a
        call into C or without a processor, it cannot shorten.
        """
        saved_ns = 0
        for pair in self.pairs:
            asked_ns = pair.count * process.interval_ns
            saved_ns += min(pair.total_ns, asked_ns) if _keeps_ns(process, pair, holds) else pair.total_ns
        return min(saved_ns, self.total_ns(process))

    def total_ns(self, process: Process) -> int:
        """Return the time of its waits: no more than the thread waited, since two holders may share one wait."""
        return min(sum(pair.total_ns for pair in self.pairs), process.threads[self.number].waiting_ns)


def _convoys(process: Process) -> list[_Convoy]:
    behind: dict[int, list[Pair]] = defaultdict(list)
    calls = [hold for line, group in by_line(process).items() if not is_starved(process, line, group) for hold in group]
    for pair in process.pairs:
        own_calls = [hold for hold in calls if hold.thread == pair.holder]
        rest = _with_processor(process, _without_calls(process, pair, own_calls), own_calls)
        if rest.count > 0 and rest.total_ns > 0:
            behind[pair.waiter].append(rest)
    is_full = sum(is_cpu_bound(process, thread) for thread in process.threads) > 1
    sharers = sharers_of(process)
    result: list[_Convoy] = []
    for number, pairs in behind.items():
        thread = process.threads[number]
        is_starting = is_full or len(process.threads) >= CROWD
        if is_starting and sum(pair.count for pair in pairs) < max(FULL_WAITS, len(process.threads) // 10):
            continue
        if number in sharers:
            continue
        if not is_cpu_bound(process, thread) and _is_convoy(process, thread, pairs):
            is_served = depends_on(process, number, frozenset(pair.holder for pair in pairs))
            result.append(_Convoy(number, pairs, is_served))
    return result


def _keeps_ns(process: Process, pair: Pair, holds: Holds) -> int:
    """Return for how long a holder usually keeps the GIL while the thread waits; 0 if it drops it on request."""
    line = process.line_of(pair.holder_node)
    usual_ns = holds.usually_kept_ns(pair.holder, pair.waiter, str(line)) if line is not None else 0
    return usual_ns if usual_ns >= BEYOND_INTERVAL * process.interval_ns else 0


def _alike(process: Process, convoys: list[_Convoy]) -> list[list[_Convoy]]:
    """Return the threads of one kind that wait alike, at the same lines, together; the one that waits longest first."""
    groups: dict[tuple[object, ...], list[_Convoy]] = defaultdict(list)
    for convoy in convoys:
        label, worst = process.label(convoy.number), convoy.worst
        # A thread whose name has no number is one of a kind, whatever other thread has the same.
        kind = thread_groups.kind_of(label) if any(map(str.isdigit, label)) else convoy.number
        lines = process.line_of(worst.holder_node), process.line_of(worst.waiter_node)
        groups[kind, convoy.is_served, str(lines)].append(convoy)
    return [sorted(group, key=lambda convoy: -convoy.total_ns(process)) for group in groups.values()]


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


def _finding(process: Process, convoys: list[_Convoy], holds: Holds) -> Finding:
    """Return the finding about threads that wait alike, of which the first waits longest.

    They wait at the same time, so the program gains no more than the one among them that gains most.
    """
    first = convoys[0]
    label, worst = process.label(first.number), first.worst
    pairs = [pair for convoy in convoys for pair in convoy.pairs]
    count, total = sum(pair.count for pair in pairs), sum(convoy.total_ns(process) for convoy in convoys)
    holder, is_many = process.label(worst.holder), len(convoys) > 1
    behind = len({pair.holder for pair in pairs}) - 1
    others = f" and {behind} others" if behind > 1 else " and another" if behind else ""
    who = f"{len(convoys)} threads, `{label}` and others like it," if is_many else f"thread `{label}`"
    keeps_ns, saved_ns = _keeps_ns(process, worst, holds), max(convoy.saved_ns(process, holds) for convoy in convoys)
    held_at, came_from = process.line_of(worst.holder_node), process.line_of(worst.waiter_node)
    details = [
        f"`{holder}` held the GIL at {held_at}" if held_at else "",
        f"`{label}` returned from a call at {came_from}" if came_from else "",
        f"longest wait {duration(max(pair.longest_ns for pair in pairs))}",
        f"it usually keeps the GIL there for {duration(keeps_ns)} of the wait, longer than the switch interval of "
        f"{duration(process.interval_ns)}: in one call into C, or without a processor"
        if keeps_ns
        else "",
    ]
    life = sum(process.seen_life_ns(process.threads[convoy.number]) for convoy in convoys)
    part = share(total, life) + " of their lives" if is_many else of_life(process, total, life)
    return Finding(
        "convoy",
        SEVERE if total > 0.1 * life and not first.is_served else NOTABLE,
        f"{who} waited {duration(total / count)} each time behind thread `{holder}`{others}, {count:,} times: {part}",
        [line for line in details if line],
        label,
        str(held_at) if held_at else None,
        {"count": count, "total_ns": total, "median_ns": worst.median_ns, "holder": holder, "threads": len(convoys)},
        _served_remedy(holder) if first.is_served else _convoy_remedy(process, min(saved_ns, process.seen_ns)),
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
