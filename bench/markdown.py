"""Markdown of the results pages: tables, and writing a page to a file or to stdout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

FIGURE = re.compile(r"[*~<>≤≥+−-]*\s*\d")
"""How a cell with a figure begins."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; columns after the first are aligned right if most of their cells hold figures."""
    if not rows:
        return "Not measured.\n"
    rule = ["---", *("---:" if _holds_figures(cells) else "---" for cells in list(zip(*rows, strict=True))[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)) + "\n"


def _holds_figures(cells: Sequence[str]) -> bool:
    words = [cell for cell in cells if cell.strip("–- ")]
    return 2 * sum(FIGURE.match(cell) is not None for cell in words) > len(words)


def write(text: str, out: Path | None) -> None:
    """Write a page to a file, or to stdout without one."""
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
