"""The table of ``unsnarl.gil.stats()``, as ``unsnarl run --stats`` prints it.

The table is generic: the one value that is a list of dicts gives the rows, keys become headings, and
the unit at the end of a key (``_ns``) selects the format of a value. A new statistic needs no change here.

An ending program prints the table among its own modules, where an import could do harm (see
`unsnarl.gil_counts`), so it is plain text on a terminal, too.

Invariant: only modules that the interpreter has already loaded are imported.
"""

import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Mapping

    Count = int | str | tuple[int, ...]
    Stats = Mapping[str, list[dict[str, Count]] | int | str | None]
    Cells = list[tuple[str, str]]
    """Headings with their formatted values, in the order of the keys."""

COLUMNS = 80
"""A table of classes that is wider has a column for each class instead of a row: stderr may be a pipe of any width."""

NOTHING = "-"
"""Stands for a missing value."""

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


def text(stats: "Stats") -> str:
    """Return the statistics of this process, as `gil_counts.named` gives them, as a table."""
    return plain(f"GIL statistics of process {os.getpid()}", *tables(stats))


def tables(stats: "Stats") -> "tuple[list[Cells], Cells]":
    """Split statistics into one row for each class of threads, and the totals."""
    rows: list[Cells] = []
    totals: Cells = []
    for name, value in stats.items():
        if isinstance(value, list):
            rows += map(_cells, value)
        else:
            totals.append(_cell(name, value))
    return rows, totals


def plain(title: str, rows: "list[Cells]", totals: "Cells") -> str:
    """Return the statistics as aligned text, numbers to the right."""
    lines = [f"unsnarl: {title}"]
    if rows:
        table = [[heading for heading, _ in rows[0]], *([value for _, value in row] for row in rows)]
        aligned = _aligned(table)
        is_too_wide = max(map(len, aligned)) > COLUMNS
        lines += _aligned([list(column) for column in zip(*table, strict=True)]) if is_too_wide else aligned
    width = max((len(heading) for heading, _ in totals), default=0)
    lines += [f"{heading:<{width}}  {value}" for heading, value in totals]
    return "\n".join(lines) + "\n"


def formatted(name: str, value: object) -> str:
    """Format a value with the unit at the end of its name."""
    if value is None:
        return NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(value))
    if name.endswith("_ns"):
        return duration(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def duration(value_ns: float) -> str:
    """Format nanoseconds in the largest unit with a digit before the point."""
    for size_ns, unit in _UNITS:
        if value_ns >= size_ns:
            value = value_ns / size_ns
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{value_ns:g} ns"


def heading_of(name: str) -> str:
    """Return a key as words, without the unit, which the value carries."""
    return name.removesuffix("_ns").replace("_", " ")


def _cells(counts: "Mapping[str, Count]") -> "Cells":
    return [_cell(name, value) for name, value in counts.items() if not isinstance(value, tuple)]  # no histogram


def _cell(name: str, value: object) -> tuple[str, str]:
    return heading_of(name), formatted(name, value)


def _aligned(lines: list[list[str]]) -> list[str]:
    """Pad each column to its widest cell; the first is aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if index == 0 else f"{cell:>{width}}"
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
