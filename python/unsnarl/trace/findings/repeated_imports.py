"""Finds modules that are imported again and again, since they are not found, or do not stay in ``sys.modules``.

An import that fails is not remembered: each further one searches the whole path. Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

from unsnarl.trace import source
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import IN_IO, MOST_IMPORTS, RUNNING, Location, Process

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
    times = _times(process, repeated)
    recorded_ns = _recorded_ns(process, repeated)
    is_cut = len(process.imports) >= MOST_IMPORTS
    total_ns = max(recorded_ns, sum(times.values()) if is_cut else 0)
    if not repeated or total_ns < max(LEAST_NS, LEAST_SHARE * process.length_ns):
        return []
    name = max(repeated, key=lambda name: repeated[name])
    first = next(entry for entry in process.imports if entry.name == name)
    place = max(times, key=lambda place: times[place], default=None)
    more = " or more" if is_cut else ""
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


def _recorded_ns(process: Process, repeated: dict[str, int]) -> int:
    """Return the time of the repeated imports without modules that only a few of them imported.

    The first import of a part that is missing imports its package.
    """
    counts = Counter(entry.name for entry in process.imports)
    result = 0
    for entry in process.imports:
        if entry.parent is None and entry.name in repeated:
            result += entry.total_ns
        elif entry.parent is not None and counts[entry.name] < LEAST_TIMES:
            parent = process.imports[entry.parent]
            result -= entry.total_ns if parent.parent is None and parent.name in repeated else 0
    return max(result, 0)


def _times(process: Process, repeated: dict[str, int]) -> dict[str, int]:
    """Return the time of searches for modules by the line of the program; if any line names one, of such lines alone.

    A module's body runs below importlib's frames, and is no search.
    """
    result: dict[str, int] = defaultdict(int)
    naming: dict[str, int] = defaultdict(int)
    for _, state, node, time_ns in process.stacks:
        stack = process.own_stack(node) if state in (RUNNING, IN_IO) else []
        searching = list(itertools.takewhile(lambda line: line.file.startswith("<frozen "), stack))
        caller = stack[len(searching)] if len(searching) < len(stack) else None
        if caller is None or not _is_search(searching):
            continue
        place = str(process.program_line(stack))
        result[place] += time_ns
        text = source.line(caller.file, caller.line)
        if any(name.rpartition(".")[2] in text for name in repeated):
            naming[place] += time_ns
    return naming or result


def _is_search(frames: list[Location]) -> bool:
    is_of_importlib = any(line.file.startswith("<frozen importlib") for line in frames)
    return is_of_importlib and not any(line.function == "_load_unlocked" for line in frames)
