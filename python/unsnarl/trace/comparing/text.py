"""A comparison of two recordings for a terminal or a pipe: first what got worse, then what got better, then tables.

Pure: a comparison in, text out, with words that name the recording instead of colours.
"""

from __future__ import annotations

from unsnarl.report.columns import COLUMNS, table, wrapped
from unsnarl.trace.comparing.comparison import Comparison, Kind, Row, Shared, Side
from unsnarl.trace.findings.finding import Finding, duration
from unsnarl.trace.model import Process
from unsnarl.trace.views.html import about

MOST_ROWS = 12
MOST_KINDS = 10
MOST_PROCESSES = 4

ONE_RUN = (
    "one recording of each: two runs differ without a cause, too. `unsnarl doctor` measures in pairs of runs until it "
    "can judge"
)
PER_SECOND = (
    "times are those of a second of the recording, since at least one is of a process that was already running; single "
    "waits are as they were"
)


def text(comparison: Comparison, columns: int | None = None) -> str:
    """Return the comparison; without ``columns``, sentences are not wrapped and tables have the default width."""
    sentences = [
        *heads(comparison),
        *notes(comparison),
        *_changes("worse in B:", comparison.worse, comparison.better),
        *_changes("better in B:", comparison.better, comparison.worse),
        *_findings("found in B only:", comparison.new),
        *_findings("found in A only:", comparison.gone),
        *_findings("found in both:", comparison.lasting),
    ]
    lines = [line for sentence in sentences for line in wrapped(_printable(sentence), columns)]
    for shared in comparison.shared[:MOST_PROCESSES]:
        lines += ["", *_tables(shared, comparison, columns or COLUMNS)]
    if len(comparison.shared) > MOST_PROCESSES:
        lines += ["", f"and {len(comparison.shared) - MOST_PROCESSES} more processes in both"]
    return "".join(f"{line}\n" for line in lines)


def heads(comparison: Comparison) -> list[str]:
    """Return a line about each recording."""
    sides = (("A", comparison.before), ("B", comparison.after))
    return [f"{name}: {' '.join(side[0].command) or 'python'} · {about(side[0])}{_more(side)}" for name, side in sides]


def _more(processes: list[Process]) -> str:
    return f" · {len(processes)} processes" if len(processes) > 1 else ""


def notes(comparison: Comparison) -> list[str]:
    """Return what a reader must know of the figures."""
    lines = [ONE_RUN]
    if comparison.is_per_second:
        lines.append(PER_SECOND)
    for name, rest in (("A", comparison.only_before), ("B", comparison.only_after)):
        if rest:
            commands = ", ".join(f"`{' '.join(process.command) or 'python'}`" for process in rest[:3])
            lines.append(f"{len(rest)} of {name}'s processes have no counterpart: {commands}")
    return lines


def _changes(head: str, rows: list[Row], others: list[Row]) -> list[str]:
    if not rows:
        return ["", f"{head} nothing" + ("" if others else " that stands out from one run of each")]
    lines = ["", head, *(f"  {change(row)}" for row in rows[:MOST_ROWS])]
    return lines if len(rows) <= MOST_ROWS else [*lines, f"  and {len(rows) - MOST_ROWS} more"]


def change(row: Row) -> str:
    """Return a row in words."""
    return f"{row.what}: {duration(row.before_ns)} → {duration(row.after_ns)}{times(row)}"


def times(row: Row) -> str:
    """Return the ratio of both times, if there is one."""
    return f" ({row.after_ns / row.before_ns:.2f} ×)" if row.before_ns and row.after_ns else ""


def difference(row: Row) -> str:
    """Return the difference of both times with its sign."""
    change_ns = row.after_ns - row.before_ns
    return ("+" if change_ns > 0 else "−" if change_ns < 0 else "") + duration(abs(change_ns))


def _findings(head: str, findings: list[Finding]) -> list[str]:
    return ["", head, *(f"  {finding.title}" for finding in findings)] if findings else []


def _tables(shared: Shared, comparison: Comparison, columns: int) -> list[str]:
    title = (
        f"process {shared.before.pid} of A and {shared.after.pid} of B" if len(comparison.shared) > 1 else "all time"
    )
    of = f"{title}, of all threads together"
    rows = [[_printable(row.what), *figures(row)] for row in shared.rows[:MOST_ROWS]]
    lines = [*wrapped(of, columns), *table([["", "A", "B", "change"], *rows], columns)]
    if len(shared.rows) > MOST_ROWS:
        lines.append(f"and {len(shared.rows) - MOST_ROWS} smaller differences")
    rows = [line for kind in shared.kinds[:MOST_KINDS] for line in kind_rows(kind)]
    lines += ["", *table([KIND_HEADS, *rows], columns, left=2)]
    if len(shared.kinds) > MOST_KINDS:
        lines.append(f"and {len(shared.kinds) - MOST_KINDS} more kinds of threads")
    return lines


def figures(row: Row) -> list[str]:
    """Return the figures of a row: both times, and their difference."""
    return [duration(row.before_ns), duration(row.after_ns), difference(row)]


KIND_HEADS = ["thread", "", "running", "waiting", "on locks", "in I/O", "sleeping", "in C code", "mean wait", "longest"]


def kind_rows(kind: Kind) -> list[list[str]]:
    """Return the rows of a kind of threads: one for each recording that has such threads."""
    name = _printable(kind.name)
    return [
        [name, f"{letter}, {side.threads:,}" if side.threads > 1 else letter, *_side(side)]
        for letter, side in (("A", kind.before), ("B", kind.after))
        if side is not None
    ]


def _side(side: Side) -> list[str]:
    return [*map(duration, side.totals_ns), duration(side.mean_wait_ns), duration(side.longest_wait_ns)]


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
