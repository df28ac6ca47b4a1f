"""Finds modules that are imported again and again, since they are not found, or do not stay in ``sys.modules``.

An import that fails is not remembered: each further one searches the whole path. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import IN_IO, MOST_IMPORTS, RUNNING, Process

LEAST_TIMES = 20
"""A program that reloads its modules, or whose tests import them anew, does so less often."""

LEAST_NS = 50_000_000
LEAST_SHARE = 0.05
SEVERE_SHARE = 0.3


def names(process: Process) -> dict[str, int]:
    """Return how often modules were imported by the program, of those imported again and again."""
    counts = Counter(entry.name for entry in process.imports if entry.parent is None)
    return {name: count for name, count in counts.items() if count >= LEAST_TIMES}


def findings(process: Process) -> list[Finding]:
    """Return the module that was imported most often, with the time of all such imports."""
    repeated = names(process)
    times = _times(process)
    recorded_ns = sum(entry.total_ns for entry in process.imports if entry.name in repeated and entry.parent is None)
    total_ns = max(sum(times.values()), recorded_ns)
    if not repeated or total_ns < max(LEAST_NS, LEAST_SHARE * process.length_ns):
        return []
    name = max(repeated, key=lambda name: repeated[name])
    first = next(entry for entry in process.imports if entry.name == name)
    place = max(times, key=lambda place: times[place], default=None)
    more = " or more" if len(process.imports) >= MOST_IMPORTS else ""
    others = len(repeated) - 1
    details = [f"{others} more {'modules are' if others > 1 else 'module is'} imported so"] if others else []
    return [
        Finding(
            "repeated-import",
            SEVERE if total_ns > SEVERE_SHARE * process.length_ns else NOTABLE,
            f"`{name}` is imported {repeated[name]:,} times{more}{f' at {place}' if place else ''}: "
            f"{duration(total_ns)} ({share(total_ns, process.length_ns)} of the run)",
            ["it is not found, or does not stay in `sys.modules`, so each import searches for it anew", *details],
            process.label(first.thread),
            place,
            {"count": repeated[name], "total_ns": total_ns},
            Remedy(
                "unsnarl will not help here: try the import once, at the top of the file, and remember that it failed"
            ),
        )
    ]


def _times(process: Process) -> dict[str, int]:
    """Return the time within imports by the line of the program."""
    result: dict[str, int] = defaultdict(int)
    for _, state, node, time_ns in process.stacks:
        stack = process.own_stack(node) if state in (RUNNING, IN_IO) else []
        if any(line.file.startswith("<frozen importlib") for line in stack):
            result[str(process.program_line(stack))] += time_ns
    return result
