"""A summary of a trace for a terminal: findings first, then threads, then system calls.

Plain text, or the same in colour, if rich is installed. A module of the traced program may have that name too, so any
failure of rich falls back to plain text. Without a width, as in a pipe, each sentence is one line, which grep finds.
"""

from __future__ import annotations

import io

from unsnarl.report.columns import COLUMNS, table, wrapped
from unsnarl.trace.findings import alike
from unsnarl.trace.findings.finding import FINE, NOTABLE, SEVERE, Finding, duration, share
from unsnarl.trace.model import Process, Thread
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.thread_groups import groups_of

MARKS = {SEVERE: "!!", NOTABLE: " !", FINE: "  "}
COLOURS = {SEVERE: "bold red", NOTABLE: "yellow", FINE: "green"}
MAX_THREADS = 12
MAX_CALLS = 8
MAX_PROCESSES = 4

StyledLine = tuple[str, str]
"""A style of rich, and the text."""


def text(
    processes: list[Process],
    findings: list[Finding],
    syscalls: Syscalls,
    columns: int | None = None,
    *,
    is_coloured: bool = False,
) -> str:
    """Return the summary in so many columns, or with unwrapped sentences if ``columns`` is None."""
    first = processes[0].pid if processes else None
    named = [process.pid for process in processes[:MAX_PROCESSES]]
    shown = [
        finding
        for finding in findings
        if finding.severity != FINE or finding.pid == first or (finding.kind == "time" and finding.pid in named)
    ]
    lines: list[StyledLine] = []
    programs = {process.pid: alike.program_of(process.command) for process in processes}
    for style, sentence in _findings(shown, first, programs):
        lines += [(style, line) for line in wrapped(_printable(sentence), columns)]
    for process in processes[:MAX_PROCESSES]:
        lines += _threads(process, columns or COLUMNS)
    if len(processes) > MAX_PROCESSES:
        lines.append(("dim", f"and {len(processes) - MAX_PROCESSES} more processes"))
    lines += _syscalls(syscalls, columns or COLUMNS)
    if is_coloured:
        try:
            return _coloured(lines)
        except (ImportError, AttributeError, TypeError):
            pass
    return "".join(f"{_printable(line)}\n" for _, line in lines)


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def _findings(findings: list[Finding], first: int | None, programs: dict[int, str]) -> list[StyledLine]:
    lines: list[StyledLine] = []
    for group in alike.groups(findings, programs):
        finding = group.worst
        lines.append((COLOURS[finding.severity], f"{MARKS[finding.severity]} {finding.title}{_where(group, first)}"))
        lines += [("", f"     {detail}") for detail in (*finding.details, group.together) if detail]
        for remedy in finding.remedies:
            command = f" ({remedy.command})" if remedy.command else ""
            saves = f", up to {duration(remedy.saves_ns)}" if remedy.saves_ns else ""
            each = " in each" if saves and group.others else ""
            lines.append(("", f"     → {remedy.what}{command}{saves}{each}"))
    return lines


def _where(group: alike.Group, first: int | None) -> str:
    """Return in words which processes a group of findings is about; nothing for the program's first one alone."""
    count = len(group.others)
    if not count:
        return "" if group.worst.pid == first else f" (process {group.worst.pid})"
    return f" (process {group.worst.pid}, and much the same in {count:,} other{'s' if count > 1 else ''})"


def _threads(process: Process, columns: int) -> list[StyledLine]:
    head = f"process {process.pid}: {duration(process.length_ns)}, {threads_of(process)}"
    heads = ["thread", "running", "waiting", "on locks", "in I/O", "sleeping", "in C code", "GIL taken", "longest wait"]
    groups = sorted(groups_of(process), key=lambda group: -_busy_ns(group.threads(process)))
    rows = [heads]
    for group in groups[:MAX_THREADS]:
        threads = group.threads(process)
        totals = [sum(parts) for parts in zip(*(thread.totals_ns for thread in threads), strict=True)]
        parts = [share(part, sum(totals)) for part in totals]
        takes, longest = sum(thread.takes for thread in threads), max(thread.longest_wait_ns for thread in threads)
        rows.append([_printable(group.label), *parts, f"{takes:,}", duration(longest)])
    lines: list[StyledLine] = [("", ""), ("bold", head), *(("", line) for line in table(rows, columns))]
    if len(groups) > MAX_THREADS:
        lines.append(("dim", f"and {sum(len(group.numbers) for group in groups[MAX_THREADS:])} more"))
    return lines


def _busy_ns(threads: list[Thread]) -> int:
    return sum(thread.waiting_ns + thread.running_ns for thread in threads)


def threads_of(process: Process) -> str:
    """Return the number of threads in words."""
    return f"{process.thread_count:,} {'thread' if process.thread_count == 1 else 'threads'}"


def _syscalls(syscalls: Syscalls, columns: int) -> list[StyledLine]:
    if not syscalls.rows:
        return []
    rows = [["system call", "calls", "errors", "time", "per call"]]
    rows += [
        [row.name, f"{row.calls:,}", f"{row.errors:,}", duration(row.time_ns), duration(row.time_ns / row.calls)]
        for row in syscalls.rows[:MAX_CALLS]
    ]
    return [("", ""), *(("", line) for line in table(rows, columns))]


def _coloured(lines: list[StyledLine]) -> str:
    from rich.console import Console
    from rich.text import Text

    width = max((len(line) for _, line in lines), default=0) + 1  # the lines are wrapped already
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    with console.capture() as capture:
        for style, line in lines:
            console.print(Text(_printable(line), style=style), soft_wrap=True)
    return capture.get()
