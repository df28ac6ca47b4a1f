"""Findings about the start: slow imports, and the time to the program's first line.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

from unsnarl.trace.findings import repeated_imports
from unsnarl.trace.findings.finding import FINE, NOTABLE, PACK, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import IN_IO, LOCK, SLEEPING, WAITING, Import, Process

if TYPE_CHECKING:
    from collections.abc import Container

SLOW_IMPORT_NS = 180_000_000
"""Of a module that the program imported, with the modules that it imports."""

HEAVY_IMPORT_NS = 5_000_000
"""Of a module by itself, to be named as one that takes most of the time."""

SLOW_IMPORT_SHARE = 0.03
"""The least share of the run."""

SLOW_START_NS = 150_000_000
"""Of all imports together; they also take `SLOW_IMPORT_SHARE` of the run."""

SLOW_SHARE = 0.25
LEAST_START_NS = 50_000_000
"""A shorter start is reported too if it takes this share of the run, and this long."""

LEAST_BEFORE = 0.1
"""The least share of the run before its recording that is named: the account does not contain it."""

EXPLAINED = 0.5
"""The share of all imports that a few slow ones take, from which on these alone are reported, if no command helps."""

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
    modules, start = slow_imports(process), slow_start(process)
    is_explained = sum(_figure(finding) for finding in modules) >= EXPLAINED * sum(map(_figure, start))
    if modules and is_explained and not any(remedy.helps for finding in start for remedy in finding.remedies):
        return modules
    return [*modules, *start] or quick_start(process)


def _figure(finding: Finding) -> float:
    return float(finding.figures["total_ns"])


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
    """Find the module that takes longest of those that the program imported, with what it imports itself.

    Others that take long are named with it; ``total_ns`` is the time of all of them.
    """
    totals: dict[str, int] = defaultdict(int)
    firsts: dict[str, int] = {}
    repeated = repeated_imports.names(process)
    for index, entry in enumerate(process.imports):
        if entry.name not in repeated and _is_outermost(process, entry, repeated):
            name = entry.name.partition(".")[0]
            totals[name] += _own_ns(process, index)
            firsts.setdefault(name, index)
    least = max(SLOW_IMPORT_NS, SLOW_IMPORT_SHARE * process.length_ns)
    slow = sorted((name for name in totals if totals[name] >= least), key=lambda name: -totals[name])
    if not slow:
        return []
    name, *others = slow
    more = ", ".join(f"`{other}` {duration(totals[other])}" for other in others)
    return [
        Finding(
            "slow-import",
            SEVERE if totals[name] > process.length_ns // 2 else NOTABLE,
            f"importing `{name}` took {duration(totals[name])} with what it imports, "
            f"{share(totals[name], process.length_ns)} of the run",
            [*_heaviest(process, name), *([f"others that take long: {more}"] if more else [])],
            process.label(process.imports[firsts[name]].thread),
            name,
            {
                "self_ns": min(process.imports[firsts[name]].self_ns, totals[name]),
                "total_ns": sum(totals[each] for each in slow),
            },
            _import_remedy(process),
        )
    ]


def _is_outermost(process: Process, entry: Import, repeated: Container[str]) -> bool:
    """Tell whether the program imported a module, or an import that is repeated and reported as such did."""
    parent = None if entry.parent is None else process.imports[entry.parent]
    return parent is None or (parent.name in repeated and parent.parent is None)


def _own_ns(process: Process, index: int) -> int:
    """Return the time of an import without the waits of its thread for the GIL, for locks and for a processor."""
    entry = process.imports[index]
    begin, end = entry.begin_ns, entry.begin_ns + entry.total_ns
    waited = blocked = 0
    for at, length, state, _ in process.threads[entry.thread].stretches:
        part = max(min(at + length, end) - max(at, begin), 0)
        waited += part if state in (WAITING, LOCK) else 0
        blocked += part if state in (IN_IO, SLEEPING) else 0
    own = max(entry.total_ns - waited, 0)
    if entry.processor_ns is None or process.resolution_ns:
        return own
    # On a busy machine the thread runs without a processor for a part of the time.
    return min(own, entry.processor_ns + blocked)


def _heaviest(process: Process, name: str) -> list[str]:
    """Return in words the modules that take most of the time by themselves, below what the program imported."""
    entries = process.imports
    below = [n for n, entry in enumerate(entries) if entry.parent is not None and _root(process, entry) == name]
    most = sorted(below, key=lambda index: -entries[index].self_ns)[:3]
    times = [(entries[index].name, _self_ns(process, index)) for index in most]
    words = [f"`{module}` {duration(self_ns)}" for module, self_ns in times if self_ns >= HEAVY_IMPORT_NS]
    return [f"most of it by themselves: {', '.join(words)}"] if words else []


def _self_ns(process: Process, index: int) -> int:
    """Return the time of an import without that of the imports in it, and without waits as in `_own_ns`."""
    inner = (number for number, entry in enumerate(process.imports) if entry.parent == index)
    own_ns = _own_ns(process, index) - sum(_own_ns(process, number) for number in inner)
    return min(process.imports[index].self_ns, max(own_ns, 0))


def _root(process: Process, entry: Import) -> str:
    for _ in range(64):
        if entry.parent is None:
            break
        entry = process.imports[entry.parent]
    return entry.name.partition(".")[0]


def is_warmable(process: Process) -> bool:
    """Tell whether ``unsnarl warm`` takes the command: it takes console scripts, and no script, module or ``-c``."""
    words = process.command[1:]
    if not words or words[0].startswith("-") or words[0].endswith((".py", ".pyw")):
        return False
    return posixpath.basename(posixpath.dirname(words[0])) in ("bin", "Scripts")


def is_packable(process: Process) -> bool:
    """Tell whether ``unsnarl pack`` takes the command: a console script or a module."""
    return is_warmable(process) or process.command[1:2] == ["-m"]


def _import_remedy(process: Process) -> Remedy:
    if is_warmable(process):
        return Remedy(
            "import it where it is used, or start from a process that has already imported it",
            "unsnarl warm",
            helps=True,
        )
    return Remedy("import it where it is used")


def slow_start(process: Process) -> list[Finding]:
    """Find imports that cost much together, or a start that takes much of a short run."""
    # A busy machine makes each import long; the program is to blame for what it computes, reads and waits for.
    total = sum(_own_ns(process, index) for index, entry in enumerate(process.imports) if entry.parent is None)
    count = module_count(process)
    before, first_line = start_ns(process)
    start = first_line + sum(
        entry.total_ns for entry in process.imports if entry.parent is None and entry.begin_ns >= process.first_line_ns
    )
    run = before + process.length_ns
    is_most = _is_much(first_line, start, run)
    if is_most and 2 * total < start and not is_packable(process):
        is_most = False  # the interpreter's own start, or a busy machine: nothing that the program does
    if total < max(SLOW_START_NS, SLOW_IMPORT_SHARE * process.length_ns) and not is_most:
        return []
    imports = f"{count:,} imports took {duration(total)}"
    title, details = f"{imports} ({share(total, process.length_ns)} of the run)", list[str]()
    if is_most:
        title = (
            f"the start is {share(start, run)} of {duration(run)}: {duration(first_line)} to the first line; {imports}"
        )
        details = [f"{duration(before)} of it passed before the recording began"] if before > LEAST_BEFORE * run else []
    return [
        Finding(
            "slow-start",
            NOTABLE,
            title,
            details,
            None,
            None,
            {"imports": count, "total_ns": total, "start_ns": start},
            _start_remedy(process, start if is_most else total),
            alternative=_PACKED if is_warmable(process) else None,
        )
    ]


def _is_much(first_line_ns: int, start_ns: int, run_ns: int) -> bool:
    return bool(first_line_ns) and start_ns >= max(LEAST_START_NS, SLOW_SHARE * run_ns)


def _start_remedy(process: Process, saves_ns: int) -> Remedy:
    if is_warmable(process):
        return Remedy(
            "a process that has already imported them starts the command without delay",
            "unsnarl warm",
            helps=True,
            saves_ns=saves_ns,
        )
    if is_packable(process):
        return Remedy("one file with the code of all modules, so none has to be searched", PACK, helps=True)
    return Remedy("import modules where they are used")


def quick_start(process: Process) -> list[Finding]:
    """Report that the start is not the cause; nothing of a long start that imports do not explain."""
    total = sum(entry.total_ns for entry in process.imports if entry.parent is None)
    before, first_line = start_ns(process)
    if _is_much(first_line, first_line, before + process.length_ns):
        return []
    to_line = f"; {duration(first_line)} to the program's first line" if first_line else ""
    return [
        Finding(
            "quick-start",
            FINE,
            f"the start is not the cause: {module_count(process):,} imports took {duration(total)}{to_line}",
            figures={"total_ns": total, "first_line_ns": first_line},
        )
    ]
