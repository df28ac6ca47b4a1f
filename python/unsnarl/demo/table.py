"""The demonstration's table: medians of both variants, and their ratio."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from unsnarl.demo import figures
from unsnarl.demo.comparison import Comparison, Figure
from unsnarl.statistics import FEWEST_PAIRS

NAMES = {"stdlib": "http.server", "gunicorn": "gunicorn"}
"""The servers' names in tables and pictures."""

COLUMNS = {
    "requests_per_s": ("requests/s", figures.count),
    "p50_us": ("p50", figures.duration),
    "p99_us": ("p99", figures.duration),
    "work_per_s": ("CPU work/s", figures.count),
}
"""Heading and format of each figure."""


WIDE = 100
"""Columns from which a ratio and its spread stand in one line."""


def table_of(comparisons: Sequence[Comparison], title: str, columns: int = 80) -> Table:
    """Return the table: three lines for each server and number of connections, four on a narrow terminal."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("server", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading, _ in COLUMNS.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for comparison in comparisons:
        add_rows(table, comparison, is_wide=columns >= WIDE)
    return table


def add_rows(table: Table, comparison: Comparison, *, is_wide: bool) -> None:
    """Add the lines stock, unsnarl and ratio of one load; the ratios' spread has a line of its own if not wide."""
    found = [(comparison.figures[name], name, write) for name, (_, write) in COLUMNS.items()]
    table.add_row(NAMES[comparison.kind], "stock", *(write(figure.stock) for figure, _, write in found))
    table.add_row(f"c = {comparison.connections}", "unsnarl", *(write(figure.unsnarl) for figure, _, write in found))
    ratios = [ratio_cell(figure, name, is_wide=is_wide) for figure, name, _ in found]
    table.add_row("", "ratio", *ratios, end_section=is_wide)
    if not is_wide:
        table.add_row("", "±", *(figures.spread(figure.ratio) for figure, _, _ in found), end_section=True)


def ratio_cell(figure: Figure, name: str, *, is_wide: bool) -> Text:
    """Return a ratio, green where it is an improvement beyond the noise."""
    text = Text(figures.times(figure.ratio) if is_wide else figures.marked(figure.ratio))
    if figure.ratio is not None and figure.ratio.is_noise() is False:
        is_better = (figure.ratio.median > 1) != name.endswith("_us")
        text.stylize("bold green" if is_better else "yellow")
    return text


def caption(comparisons: Sequence[Comparison], where: str, pairs: int) -> str:
    """Return the explanation under the table."""
    lines = [
        f"{where}; medians of {pairs} alternating pairs.",
        "c: kept-alive connections. CPU work: units done by the CPU-bound threads.",
        "ratio: unsnarl to stock within a pair, ± the pairs' standard deviation.",
    ]
    ratios = [f.ratio for comparison in comparisons for f in comparison.figures.values()]
    if any(ratio is not None and ratio.is_noise() for ratio in ratios):
        lines.append("≈: within the noise, the pairs do not decide which side is greater.")
    if any(ratio is not None and ratio.is_noise() is None for ratio in ratios):
        lines.append(f"{figures.TOO_FEW}: of fewer than {FEWEST_PAIRS} pairs, too few to judge.")
    if any(_falls(comparison.figures["work_per_s"]) for comparison in comparisons):
        lines += [
            "CPU work falls because more requests are answered: each runs Python code with",
            "the GIL, in time that the CPU-bound threads have without those requests. They",
            "keep a fifth; another share: `unsnarl run --batch-share 40%`.",
        ]
    return "\n".join(lines)


def _falls(figure: Figure) -> bool:
    return figure.ratio is not None and figure.ratio.is_noise() is False and figure.ratio.median < 1
