"""A comparison of two recordings as one self-contained HTML file: the changes, and the pages of both side by side.

The templates are next to this module: ``page.html``, ``page.css`` and ``page.js``, within the frame of
``unsnarl.trace.views.document``. Each recording has its own page, as
``unsnarl trace`` writes it, in a frame of its own; the script moves both timelines together.
"""

from __future__ import annotations

import html
from pathlib import Path

from unsnarl.trace.comparing import text
from unsnarl.trace.comparing.comparison import Comparison, Row
from unsnarl.trace.findings.conclusions import all_findings
from unsnarl.trace.findings.finding import Finding
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.views import html as reports
from unsnarl.trace.views.document import document, embedded

HERE = Path(__file__).parent
MOST_ROWS = 40


def page(comparison: Comparison) -> str:
    """Return the page."""
    title = f"{' '.join(comparison.after[0].command) or 'python'} · two traces"
    pages = [reports.page(side, all_findings(side), Syscalls()) for side in (comparison.before, comparison.after)]
    parts = {
        "@SUMMARY@": "\n".join(_summary(comparison)),
        "@BEFORE@": embedded(pages[0]),
        "@AFTER@": embedded(pages[1]),
        "@SCRIPT@": (HERE / "page.js").read_text(encoding="utf-8"),
    }
    return document(title, HERE, "page", parts)


def _summary(comparison: Comparison) -> list[str]:
    lines = [f"<p>{_prose(line)}</p>" for line in text.heads(comparison)]
    lines += [f'<p class="quiet">{_prose(line)}</p>' for line in text.notes(comparison)]
    lines.append('<div class="columns">')
    lines += _changes("worse", "Worse in B", comparison.worse)
    lines += _changes("better", "Better in B", comparison.better)
    lines.append("</div>")
    for head, findings in (
        ("Found in B only", comparison.new),
        ("Found in A only", comparison.gone),
        ("Found in both", comparison.lasting),
    ):
        lines += _findings(head, findings)
    for shared in comparison.shared[: text.MOST_PROCESSES]:
        of = f", process {shared.before.pid} of A and {shared.after.pid} of B" if len(comparison.shared) > 1 else ""
        rows = [[row.what, *text.figures(row)] for row in shared.rows[:MOST_ROWS]]
        lines += _table(f"Where the time went{of}", ["", "A", "B", "change"], rows, left=1)
        rows = [line for kind in shared.kinds[:MOST_ROWS] for line in text.kind_rows(kind)]
        lines += _table(f"Threads{of}", text.KIND_HEADS, rows, left=2)
    return lines


def _changes(name: str, head: str, rows: list[Row]) -> list[str]:
    items = [f"<li>{_prose(text.change(row))}</li>" for row in rows[:MOST_ROWS]] or ['<li class="quiet">nothing</li>']
    return [f'<section id="{name}"><h2>{head}</h2><ul>', *items, "</ul></section>"]


def _findings(head: str, findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    items = [f'<li class="{finding.severity}">{_prose(finding.title)}</li>' for finding in findings]
    return [f'<section class="found"><h2>{head}</h2><ul>', *items, "</ul></section>"]


def _table(head: str, heads: list[str], rows: list[list[str]], left: int) -> list[str]:
    def line(cells: list[str], tag: str) -> str:
        marks = ["" if at < left else ' class="n"' for at in range(len(cells))]
        inner = "".join(f"<{tag}{mark}>{_prose(cell)}</{tag}>" for cell, mark in zip(cells, marks, strict=True))
        return f"<tr>{inner}</tr>"

    body = [line(heads, "th"), *(line(row, "td") for row in rows)]
    return [f'<section><h2>{html.escape(head)}</h2><div class="wide"><table>', *body, "</table></div></section>"]


def _prose(line: str) -> str:
    """Return a line as HTML, with what stands between backquotes as code."""
    pieces = line.split("`")
    return "".join(
        f"<code>{html.escape(part)}</code>" if at % 2 else html.escape(part) for at, part in enumerate(pieces)
    )
