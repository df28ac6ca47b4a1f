"""The table of ``unsnarl.gil.stats()``, as ``unsnarl run --stats`` prints it.

Generic over the fields of the dataclasses it is given: rows are the one field
that is a tuple of dataclasses, names become headings, and the unit at the end of
a name (``_ns``) says how a value is written. So a statistic added there shows up
here.

It is printed by a program that is ending, among that program's own modules:
what it needs beyond the standard library (rich, for colour on a terminal) may
be missing or be something else by that name, and then the plain text is written.
"""

import io
import os
from dataclasses import fields, is_dataclass
from typing import Any, cast

NOTHING = "-"
"""What stands for a value that there is none of."""

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))

Cells = list[tuple[str, str]]
"""Headings with their formatted values, in the order of the fields."""


def text(stats: object, *, columns: int | None = None) -> str:
    """Return the statistics of this process as text.

    Args:
        stats: the statistics, a dataclass.
        columns: the width of the terminal that is to show it in colour, or None
            for text without any.
    """
    rows, totals = tables(stats)
    title = f"GIL statistics of process {os.getpid()}"
    if columns is not None:
        try:
            return _coloured(title, rows, totals, columns)
        except (ImportError, AttributeError, TypeError):
            pass
    return plain(title, rows, totals)


def tables(stats: object) -> tuple[list[Cells], Cells]:
    """Split statistics into one row for each class of threads, and what concerns all of them."""
    rows: list[Cells] = []
    totals: Cells = []
    for name, value in _fields(stats):
        if _is_tuple_of_records(value):
            rows += [_cells(row) for row in value]
        else:
            totals += _cells_of(name, value)
    return rows, totals


def plain(title: str, rows: list[Cells], totals: Cells) -> str:
    """Return the statistics as aligned text, numbers to the right."""
    lines = [f"unsnarl: {title}"]
    if rows:
        lines += _aligned([[heading for heading, _ in rows[0]], *([value for _, value in row] for row in rows)])
    width = max((len(heading) for heading, _ in totals), default=0)
    lines += [f"{heading:<{width}}  {value}" for heading, value in totals]
    return "\n".join(lines) + "\n"


def formatted(name: str, value: object) -> str:
    """Write a value with the unit that its name carries."""
    if value is None:
        return NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(value))
    if name.endswith("_ns"):
        return duration(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def duration(value_ns: float) -> str:
    """Write nanoseconds in the largest unit that leaves a digit before the point."""
    for size_ns, unit in _UNITS:
        if value_ns >= size_ns:
            value = value_ns / size_ns
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{value_ns:g} ns"


def heading_of(name: str) -> str:
    """Turn a field's name into words, without the unit, which stands at the value."""
    return name.removesuffix("_ns").replace("_", " ")


def _fields(record: object) -> list[tuple[str, Any]]:
    if not is_dataclass(record):
        raise TypeError(f"not a dataclass: {record!r}")
    return [(field.name, getattr(record, field.name)) for field in fields(record)]


def _cells(record: object) -> Cells:
    return [cell for name, value in _fields(record) for cell in _cells_of(name, value)]


def _cells_of(name: str, value: object) -> Cells:
    """Return one cell, those of a nested record, or none for raw data such as buckets."""
    if is_dataclass(value) and not isinstance(value, type):
        return [(f"{heading_of(name)} {heading}", text) for heading, text in _cells(value)]
    if isinstance(value, tuple | list | dict):
        return []
    return [(heading_of(name), formatted(name, value))]


def _is_tuple_of_records(value: object) -> bool:
    if not isinstance(value, tuple) or not value:
        return False
    return all(map(is_dataclass, cast("tuple[object, ...]", value)))


def _aligned(lines: list[list[str]]) -> list[str]:
    """Pad columns to their widest cell, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _coloured(title: str, rows: list[Cells], totals: Cells, columns: int) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=io.StringIO(), force_terminal=True, width=columns)
    table = Table(title=f"unsnarl: {title}", title_justify="left", box=None, pad_edge=False)
    for place, (heading, _) in enumerate(rows[0] if rows else []):
        table.add_column(heading, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*(Text(value) for _, value in row))
    summary = Table(box=None, pad_edge=False, show_header=False)
    for heading, value in totals:
        summary.add_row(Text(heading), Text(value))
    with console.capture() as capture:
        console.print(table, summary)
    return capture.get()
