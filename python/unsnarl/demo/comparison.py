"""Compares the windows of both variants: medians, and the ratio within each pair.

Pure: no clock, no process, no output. The statistics are ``unsnarl.statistics``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unsnarl.demo.measurement import Window
from unsnarl.demo.variant import STOCK, UNSNARL
from unsnarl.statistics import Ratio, median_of, ratio_of

FIGURES = ("requests_per_s", "p50_us", "p99_us", "work_per_s")


class Figure(NamedTuple):
    """One figure of both variants: medians, None where nothing was measured, and their ratio."""

    stock: float | None
    unsnarl: float | None
    ratio: Ratio | None


class Comparison(NamedTuple):
    """Both variants of one server under one load."""

    kind: str
    connections: int
    figures: dict[str, Figure]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        rows = {
            name: {
                "stock": figure.stock,
                "unsnarl": figure.unsnarl,
                "ratio": figure.ratio._asdict() if figure.ratio else None,
            }
            for name, figure in self.figures.items()
        }
        return {"server": self.kind, "connections": self.connections, **rows}


def figure_of(stock: list[Window], unsnarl: list[Window], name: str) -> Figure:
    """Return the figure ``name`` of two lists of windows in the order of their pairs."""
    before: list[float | None] = [getattr(window, name) for window in stock]
    after: list[float | None] = [getattr(window, name) for window in unsnarl]
    ratio = ratio_of(list(zip(before, after, strict=True)))
    return Figure(median_of(before), median_of(after), ratio)


def windows_of(windows: Sequence[Window], kind: str, connections: int, variant: str) -> list[Window]:
    """Return the windows of one variant under one load, in the order of their pairs."""
    mine = [w for w in windows if (w.kind, w.connections, w.variant) == (kind, connections, variant)]
    return sorted(mine, key=lambda window: window.pair)


def compare(windows: Sequence[Window]) -> list[Comparison]:
    """Return one comparison for each server and load, in the order of the measurement."""
    comparisons: list[Comparison] = []
    for kind in dict.fromkeys(window.kind for window in windows):
        for connections in dict.fromkeys(w.connections for w in windows if w.kind == kind):
            stock, unsnarl = (windows_of(windows, kind, connections, v) for v in (STOCK, UNSNARL))
            figures = {name: figure_of(stock, unsnarl, name) for name in FIGURES}
            comparisons.append(Comparison(kind, connections, figures))
    return comparisons
