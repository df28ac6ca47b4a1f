"""Finds event loops that wake up for the timer of one task, every few milliseconds: the task may look for something.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from unsnarl.trace.findings.account import idle_ns
from unsnarl.trace.findings.finding import NOTABLE, Finding, Remedy, duration, of_life
from unsnarl.trace.findings.spinning import LEAST_NS, SHORT_SLEEP_NS, SLEEPING_SHARE
from unsnarl.trace.loop_rounds import Timed

if TYPE_CHECKING:
    from unsnarl.trace.model import Location, Process

LEAST_SAMPLES = 10
"""The fewest sampled waits that tell what ends the waits of a loop."""

TIMED_SHARE = 0.5
"""The least share of a loop's waits, by number and by time, that the timer of a task at one line ends."""


def findings(process: Process) -> list[Finding]:
    """Return a finding for each thread whose loop mostly waits for the timer of a task that is due soon."""
    whole: dict[int, Timed] = {}
    timed: dict[int, dict[Location, Timed]] = defaultdict(dict)
    for one in process.loop_rounds.timed:
        place = process.program_line(one.stack)
        if not one.stack:
            whole[one.thread] = one
        elif place is not None:
            earlier = timed[one.thread].get(place, Timed(one.thread, 0, 0, []))
            count, total_ns = earlier.count + one.count, earlier.total_ns + one.total_ns
            timed[one.thread][place] = Timed(one.thread, count, total_ns, one.stack)
    result: list[Finding] = []
    for number, places in timed.items():
        place, most = max(places.items(), key=lambda entry: entry[1].count)
        if number in whole and _is_mostly(most, whole[number]):
            asleep_ns = idle_ns(process, number) * most.total_ns // whole[number].total_ns
            if asleep_ns >= max(LEAST_NS, SLEEPING_SHARE * process.seen_life_ns(process.threads[number])):
                result.append(_finding(process, place, most, whole[number].count, asleep_ns))
    return result


def _is_mostly(part: Timed, whole: Timed) -> bool:
    is_known = part.count >= LEAST_SAMPLES and part.total_ns <= SHORT_SLEEP_NS * part.count
    return (
        is_known and part.count >= TIMED_SHARE * whole.count and part.total_ns >= TIMED_SHARE * max(whole.total_ns, 1)
    )


def _finding(process: Process, place: Location, timed: Timed, waits: int, asleep_ns: int) -> Finding:
    label, life = process.label(timed.thread), process.seen_life_ns(process.threads[timed.thread])
    mean = duration(timed.total_ns / timed.count)
    return Finding(
        "polling",
        NOTABLE,
        f"the event loop of thread `{label}` wakes up after {mean} again and again, "
        f"{of_life(process, asleep_ns, life)}: a task sleeps, or waits with a timeout, at {place}",
        [f"its timer ended {timed.count:,} of {waits:,} waits of the loop that were looked at"],
        label,
        str(place),
        {"count": timed.count, "total_ns": asleep_ns, "mean_ns": timed.total_ns // timed.count},
        Remedy(
            "where the task only looks whether something has happened, await that itself (an Event, a Queue, "
            "a Future), or sleep for longer"
        ),
    )
