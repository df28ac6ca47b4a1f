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
    timers,
)
from unsnarl.trace.findings.explained import without_explained
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
            timers,
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
        found = without_explained(found)
        result += [replace(finding, pid=process.pid) for finding in found]
        times += [replace(finding, pid=process.pid) for finding in account.findings(process)]
    order = (SEVERE, NOTABLE, FINE)
    return times + sorted(result, key=lambda finding: order.index(finding.severity))


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
