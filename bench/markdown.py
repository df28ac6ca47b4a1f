"""Markdown of the results pages: tables, and writing a page to a file or to stdout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; columns after the first are aligned right."""
    if not rows:
        return "Not measured.\n"
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)) + "\n"


def write(text: str, out: Path | None) -> None:
    """Write a page to a file, or to stdout without one."""
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")
