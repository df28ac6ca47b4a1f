"""Collects the findings about all processes of a program: first where the time went, then the severe ones.

Pure: processes in, findings out.
"""

from __future__ import annotations

from dataclasses import replace

from unsnarl.trace.findings import (
    account,
    event_loop,
    gil,
    locks,
    pools,
    queues,
    repeated_imports,
    resources,
    rounds,
    shared_locks,
    spinning,
    startup,
    stuck,
    tasks,
    threads,
)
from unsnarl.trace.findings.finding import FINE, NOTABLE, SEVERE, Finding, Remedy, duration
from unsnarl.trace.model import Process


def all_findings(processes: list[Process]) -> list[Finding]:
    """Return the findings about all processes: where each spent its time, then the others, the severe ones first."""
    times: list[Finding] = []
    result: list[Finding] = []
    for process in processes:
        found = lost_records(process)
        for part in (
            event_loop,
            tasks,
            stuck,
            threads,
            spinning,
            rounds,
            pools,
            queues,
            resources,
            shared_locks,
            gil,
            locks,
            repeated_imports,
            startup,
        ):
            found += part.findings(process)
        found = merged(found)
        result += [replace(finding, pid=process.pid) for finding in found]
        times += [replace(finding, pid=process.pid) for finding in account.findings(process)]
    order = (SEVERE, NOTABLE, FINE)
    return times + sorted(result, key=lambda finding: order.index(finding.severity))


def merged(found: list[Finding]) -> list[Finding]:
    """Leave out what another finding explains.

    Of many threads, neither all stacks nor all waits have a cause alone. A thread that spins is in no long C call, but
    may keep the GIL while it has no processor. Where tasks or threads wait for a lock otherwise, it may be the cause.
    Many rounds of a loop that nobody watches look like one call. Where a pool is full, tasks wait for its workers.
    """
    if any(finding.kind in ("task-waits", "stuck", "empty-pool", "shared-lock") for finding in found):
        found = [finding for finding in found if finding.kind != "no-lock-contention"]
    if any(finding.kind == "full-pool" for finding in found):
        found = [one for one in found if one.kind != "task-waits" or not one.figures["is_for_worker"]]
    if any(finding.kind == "stuck" for finding in found):
        # Their waits have no holder, since nobody released the lock.
        found = [finding for finding in found if finding.kind != "contended-lock" or finding.figures["holder"] != "?"]
    # A thread that sleeps with a lock that others wait for does not look for anything.
    held = {finding.place for finding in found if finding.kind == "contended-lock" and finding.figures["across_io"]}
    found = [finding for finding in found if finding.kind != "polling" or finding.place not in held]
    spinning = {finding.thread for finding in found if finding.kind == "spinning"}
    found = [finding for finding in found if finding.kind != "long-hold" or finding.thread not in spinning]
    rounds = {finding.thread for finding in found if finding.kind == "rounds" and not finding.figures["is_watched"]}
    found = [
        one for one in found if one.kind != "loop-stall" or one.thread not in rounds or not one.figures["computes"]
    ]
    if not any(finding.kind in ("thread-per-timer", "thread-per-task") for finding in found):
        return found
    return [finding for finding in found if finding.kind not in ("lock-waits", "gil-waits", "futex-storm")]


def lost_records(process: Process) -> list[Finding]:
    """Report records that newer ones have replaced."""
    if not process.overwritten and not process.lost:
        return []

    total = process.overwritten + process.lost
    imports = ", and so do imports" if startup.is_start_lost(process) else "; the imports of the start are kept"
    return [
        Finding(
            "lost-records",
            FINE,
            f"{total:,} older records were replaced by newer ones: the timeline begins at "
            f"{duration(process.records_from_ns)}{imports}; totals cover the whole run",
            figures={"overwritten": process.overwritten, "lost": process.lost},
            remedy=Remedy("a larger file holds more: `unsnarl trace --size 256`"),
        )
    ]
