"""Findings about threads that are started for one small task each, and about timers, of which each is a thread.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from unsnarl.trace.findings.finding import NOTABLE, Finding, Remedy, duration, share
from unsnarl.trace.model import Process
from unsnarl.trace.thread_groups import ThreadGroup, groups_of

MOST_TIMERS = 50
"""Threads of timers from which on one thread should serve them all."""

MOST_TASKS = 100
"""Threads that have ended soon, from which on a pool should serve their tasks."""

SHORT_LIFE_NS = 50_000_000
"""The longest median life of threads that do one small task each."""

START_SHARE = 0.05
"""The least share of the starting thread's time in ``Thread.start``, to be worth a pool."""

_TIMER = "Timer.run"
_START = "Thread.start"


def findings(process: Process) -> list[Finding]:
    """Return the findings about threads that are started too often."""
    timers = {number for number, _, node, _ in process.stacks if _has(process, node, _TIMER)}
    result: list[Finding] = []
    tasks: list[int] = []
    for group in groups_of(process):
        if len(group.numbers) >= MOST_TIMERS and not timers.isdisjoint(group.numbers):
            result.append(_timers(process, group))
        elif len(group.numbers) >= MOST_TASKS:
            tasks += group.numbers
    return [*result, *_tasks(process, tasks)]


def _has(process: Process, node: int, function: str) -> bool:
    return any(line.function == function and process.is_library(line) for line in process.stack(node))


def _start(process: Process) -> tuple[int, str | None, int, int]:
    """Return the thread that spends most time in ``Thread.start``, the line of most of it, its time and the count."""
    times: dict[tuple[int, str], int] = defaultdict(int)
    totals: dict[int, int] = defaultdict(int)
    for number, _, node, time_ns in process.stacks:
        if _has(process, node, _START):
            times[number, str(process.line_of(node))] += time_ns
            totals[number] += time_ns
    if not times:
        return 0, None, 0, 0
    number = max(totals, key=lambda number: totals[number])
    place = max((key for key in times if key[0] == number), key=lambda key: times[key])[1]
    return number, place, totals[number], sum(process.threads[number].totals_ns)


def _timers(process: Process, group: ThreadGroup) -> Finding:
    _, place, _, _ = _start(process)
    count = len(group.numbers)
    at = f", at {place}" if place else ""
    return Finding(
        "thread-per-timer",
        NOTABLE,
        f"{count:,} timers are a thread each{at}: up to {_most_at_once(process, group):,} at the same time",
        ["a `threading.Timer` starts a thread that does nothing but wait for its deadline"],
        group.label,
        place,
        {"threads": count},
        Remedy(
            "unsnarl will not help here: let one thread serve all deadlines (`sched`, a heap with a Condition), "
            "or use an event loop's `call_later`"
        ),
    )


def _tasks(process: Process, numbers: list[int]) -> list[Finding]:
    threads = [process.threads[number] for number in numbers]
    lives = [thread.end_ns - thread.begin_ns for thread in threads if thread.has_ended]
    starter, place, start_ns, life_ns = _start(process)
    if len(lives) < MOST_TASKS or median(lives) > SHORT_LIFE_NS or start_ns < START_SHARE * life_ns:
        return []
    return [
        Finding(
            "thread-per-task",
            NOTABLE,
            f"{len(lives):,} threads were started for one task each, and lived for {duration(median(lives))} (median)"
            + (f", at {place}" if place else ""),
            [f"thread `{process.label(starter)}` spent {share(start_ns, life_ns)} of its life on starting threads"],
            process.label(starter),
            place,
            {"threads": len(lives), "median_ns": median(lives), "start_ns": start_ns},
            Remedy(
                "unsnarl will not help here: keep the threads, in a pool (`concurrent.futures.ThreadPoolExecutor`), "
                "or do so small a task where it arises"
            ),
        )
    ]


def _most_at_once(process: Process, group: ThreadGroup) -> int:
    moments = sorted(
        moment for thread in group.threads(process) for moment in ((thread.begin_ns, 1), (thread.end_ns, -1))
    )
    most = alive = 0
    for _, change in moments:
        alive += change
        most = max(most, alive)
    return most
