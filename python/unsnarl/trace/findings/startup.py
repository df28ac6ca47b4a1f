"""Findings about the start: slow imports, and the time to the program's first line.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from unsnarl.trace.findings.finding import FINE, NOTABLE, PACK, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import Import, Process

SLOW_IMPORT_NS = 50_000_000
"""Of a module's own time, without the modules that it imports."""

SLOW_START_NS = 150_000_000
"""Of all imports together."""

SLOW_SHARE = 0.25
LEAST_START_NS = 50_000_000
"""A shorter start is reported too if it takes this share of the run, and this long."""

_PACKED = Remedy(
    "where no process may stay in memory: one file with the code of all modules, so none has to be searched",
    PACK,
    helps=True,
)


def findings(process: Process) -> list[Finding]:
    """Return the findings about the start of a process; none if the start was not recorded or is lost."""
    if not process.imports and not process.first_line_ns:
        return []
    if is_start_lost(process):
        return slow_imports(process)
    result = [*slow_imports(process), *slow_start(process)]
    return result or quick_start(process)


def start_ns(process: Process) -> tuple[int, int]:
    """Return the time from the start of the process to its recording, and to its first line."""
    before = process.started_ns - process.executed_ns if process.executed_ns else 0
    return before, before + process.first_line_ns if process.first_line_ns else 0


def module_count(process: Process) -> int:
    """Return how many modules were imported; a module whose body ran later has two entries."""
    return len({entry.name for entry in process.imports})


def is_start_lost(process: Process) -> bool:
    """Tell whether newer records have replaced those of the start, of which a bounded number is kept."""
    is_kept = 0 < process.first_line_ns <= process.start_until_ns
    return bool(process.overwritten) and not is_kept


def slow_imports(process: Process) -> list[Finding]:
    """Find modules whose own body takes long."""
    slow = sorted((entry for entry in process.imports if entry.self_ns >= SLOW_IMPORT_NS), key=lambda e: -e.self_ns)
    return [
        Finding(
            "slow-import",
            SEVERE if entry.self_ns > 4 * SLOW_IMPORT_NS else NOTABLE,
            f"importing `{entry.name}` took {duration(entry.self_ns)} by itself, "
            f"{duration(entry.total_ns)} with what it imports",
            [f"imported by {' → '.join(_chain(process, entry))}"] if entry.parent is not None else [],
            process.label(entry.thread),
            entry.name,
            {"self_ns": entry.self_ns, "total_ns": entry.total_ns},
            Remedy(
                "import it where it is used, or start from a process that has already imported it",
                "unsnarl warm",
                helps=True,
            ),
        )
        for entry in slow[:5]
    ]


def _chain(process: Process, entry: Import) -> list[str]:
    """Return the names of the enclosing imports, the outermost first."""
    names: list[str] = []
    while entry.parent is not None and len(names) < 32:
        entry = process.imports[entry.parent]
        names.append(f"`{entry.name}`")
    return names[::-1]


def slow_start(process: Process) -> list[Finding]:
    """Find imports that cost much together, or a start that takes much of a short run."""
    total = sum(entry.total_ns for entry in process.imports if entry.parent is None)
    count = module_count(process)
    before, first_line = start_ns(process)
    start = first_line + sum(
        entry.total_ns for entry in process.imports if entry.parent is None and entry.begin_ns >= process.first_line_ns
    )
    run = before + process.length_ns
    is_most = bool(first_line) and start >= max(LEAST_START_NS, SLOW_SHARE * run)
    if total < SLOW_START_NS and not is_most:
        return []
    imports = f"{count:,} imports took {duration(total)}"
    title = f"{imports} ({share(total, process.length_ns)} of the run)"
    if is_most:
        title = f"the start is {share(start, run)} of the run: {duration(first_line)} to its first line; {imports}"
    return [
        Finding(
            "slow-start",
            NOTABLE,
            title,
            [],
            None,
            None,
            {"imports": count, "total_ns": total, "start_ns": start},
            Remedy(
                "a process that has already imported them starts the command without delay",
                "unsnarl warm",
                helps=True,
                saves_ns=start if is_most else total,
            ),
            alternative=_PACKED,
        )
    ]


def quick_start(process: Process) -> list[Finding]:
    """Report that the start is not the cause."""
    total = sum(entry.total_ns for entry in process.imports if entry.parent is None)
    _, first_line = start_ns(process)
    to_line = f"; {duration(first_line)} to the program's first line" if first_line else ""
    return [
        Finding(
            "quick-start",
            FINE,
            f"the start is not the cause: {module_count(process):,} imports took {duration(total)}{to_line}",
            figures={"total_ns": total, "first_line_ns": first_line},
        )
    ]
