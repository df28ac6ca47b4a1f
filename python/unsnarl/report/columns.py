"""Lays out sentences and tables in a given number of columns, without cutting or breaking a word.

Pure: cells in, lines out, for a terminal, a pipe or a file; no colour. A table takes the first of these forms that
fits: one line for each row; the same under headings of several lines; with the first cell on several lines; with the
first cell of each row on a line of its own; the headings and values of each row one after the other. Invariant: no
line is wider than the columns, unless a single word is.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence

COLUMNS = 80
"""The width of a terminal that is not known, and of a pipe."""

LEAST = 40
"""Narrower terminals get lines of this width."""

_LEAST_NAME = 24
"""The least room for first cells on several lines."""

_GAP = "  "
_INDENT = "    "
_UNIT = re.compile(r"(?<=\d) (?=(?:%|×|ns|µs|us|ms|s|MB|MiB)(?:\W|$))")
"""The space between a number and its unit, at which no line ends."""

_AFTER = re.compile(r"(?<=[/_.,:=-])(?=[^/_.,:=-])")
"""Where a word that is longer than a line continues on the next one."""


def known(descriptor: int) -> int | None:
    """Return the width that COLUMNS or the terminal at a descriptor states, or None."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated):
        return int(stated)
    try:
        return os.get_terminal_size(descriptor).columns or None
    except OSError:
        return None


def wrapped(sentence: str, columns: int | None) -> list[str]:
    """Wrap a sentence between words; its further lines are indented as its first, and by two more.

    Without ``columns``, the sentence is one line.
    """
    if columns is None:
        return [sentence]
    indent = " " * (len(sentence) - len(sentence.lstrip()) + 2)
    width = max(columns, LEAST)
    words = [
        part for word in re.split(r"( +)", _UNIT.sub("\xa0", sentence)) for part in _parts(word, width - len(indent))
    ]
    lines: list[str] = [""]
    for word in words:
        if lines[-1].strip() and len((lines[-1] + word).rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append(indent)
        if word.strip() or not lines[-1].isspace() or len(lines) == 1:
            lines[-1] += word
    return [line.rstrip().replace("\xa0", " ") for line in lines]


def joined(fields: Sequence[str], columns: int | None) -> list[str]:
    """Join fields with two spaces into lines that break only between fields; further lines are indented."""
    lines = wrapped(fields[0], columns)
    for field in fields[1:]:
        if columns is not None and len(lines[-1]) + len(_GAP) + len(field) > max(columns, LEAST):
            lines += wrapped(_INDENT + field, columns)
        else:
            lines[-1] += _GAP + field
    return lines


def _parts(word: str, room: int) -> list[str]:
    """Divide a word that is longer than the room after its separators, else return it whole."""
    return _AFTER.split(word) if len(word) > room else [word]


def table(rows: Sequence[Sequence[str]], columns: int | None = COLUMNS, left: int = 1) -> list[str]:
    """Lay out a table, whose first row has the headings.

    Args:
        rows: the cells of each row, as many in each row.
        columns: the width; None for one line a row, whatever its width.
        left: how many columns, from the first, are aligned left; the others are aligned right.
    """
    cells = [list(row) for row in rows]
    if columns is None:
        return _plain(cells, left)
    width = max(columns, LEAST)
    for form in (_plain, _under_tall_headings, _beside_tall_names, _under_names):
        lines = form(cells, left, width)
        if all(len(line) <= width for line in lines):
            return lines
    return _sentences(cells, width)


def _plain(rows: list[list[str]], left: int, _width: int = 0) -> list[str]:
    return aligned(rows, left)


def _under_tall_headings(rows: list[list[str]], left: int, _width: int = 0) -> list[str]:
    """Give the headings as many lines as their words need in the width of the cells below them."""
    widths = [
        max([max(map(len, heading.split()), default=0), *(len(row[at]) for row in rows[1:])])
        for at, heading in enumerate(rows[0])
    ]
    tall = [_words_in(heading, width) for heading, width in zip(rows[0], widths, strict=True)]
    height = max(map(len, tall))
    tall = [[""] * (height - len(lines)) + lines for lines in tall]
    return aligned([*([lines[at] for lines in tall] for at in range(height)), *rows[1:]], left)


def _words_in(text: str, room: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, max(room, 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _beside_tall_names(rows: list[list[str]], left: int, width: int) -> list[str]:
    """Wrap the first cells into the room that the other columns leave; the figures are on the last of its lines."""
    others = _under_tall_headings([["", *row[1:]] for row in rows], left)
    room = width - max(map(len, others))
    names = [_words_in(row[0], room, "  ") for row in rows]
    used = max(len(line) for lines in names for line in lines)
    if used > room or room < _LEAST_NAME:
        return [" " * (width + 1)]  # does not fit
    heading_lines = len(others) - len(rows) + 1
    result = [f"{'':<{used}}{line}".rstrip() for line in others[: heading_lines - 1]]
    for lines, line in zip(names, others[heading_lines - 1 :], strict=True):
        result += [*lines[:-1], f"{lines[-1] if lines else '':<{used}}{line}".rstrip()]
    return result


def _under_names(rows: list[list[str]], left: int, _width: int = 0) -> list[str]:
    """Put the first cell of each row on a line of its own, above the others, unless it is that of the row before."""
    figures = _under_tall_headings([["", *row[1:]] for row in rows], left)
    figures = [_INDENT + line.removeprefix(_GAP) for line in figures]
    heading_lines = len(figures) - len(rows) + 1
    lines = [*([rows[0][0]] if rows[0][0] else []), *figures[:heading_lines]]
    previous = None
    for row, line in zip(rows[1:], figures[heading_lines:], strict=True):
        if row[0] and row[0] != previous:
            lines.append(row[0])
        previous = row[0] or previous
        lines.append(line)
    return lines


def _sentences(rows: list[list[str]], width: int) -> list[str]:
    lines = wrapped(rows[0][0], width) if rows[0][0] else []
    for row in rows[1:]:
        lines += wrapped(row[0], width)
        lines += joined(
            ["", *(f"{head} {cell}" for head, cell in zip(rows[0][1:], row[1:], strict=True) if cell)], width
        )
    return lines


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Pad each column to its widest cell; the first ``left`` are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            f"{cell:<{width}}" if at < left else f"{cell:>{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
