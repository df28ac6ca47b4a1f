"""What the windows of alternating pairs say: medians, and the ratio within each pair.

A ratio is formed inside a pair, where both sides met the same machine, and only
then summed up over the pairs; its spread is the standard deviation of the pairs'
ratios. A difference counts as within the noise when 1 lies in the confidence
interval of the median ratio. That interval is between order statistics (W. R.
Thompson, Annals of Mathematical Statistics 7, 1936), so it assumes nothing about
how measurements are distributed; of five pairs it is their range. Fewer pairs cannot
reach ``CONFIDENCE`` and are not judged at all: of three, a quarter would all lie on one
side of 1 where nothing differs.
Pure: no clock, no process, no output.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from unsnarl.demo.measurement import Window
from unsnarl.demo.variant import STOCK, UNSNARL

CONFIDENCE = 0.9375
"""The probability that the range of five values holds the true median: 1 - 2 / 2**5."""

FEWEST_PAIRS = 5
"""Pairs of which the range holds the true median with ``CONFIDENCE``; fewer are too few to judge."""

FIGURES = ("requests_per_s", "p50_us", "p99_us", "work_per_s")


class Ratio(NamedTuple):
    """The ratio of the second of two variants to the first, over several pairs."""

    median: float
    spread: float | None
    """Standard deviation over the pairs; None for a single pair."""
    low: float
    """Lower end of the confidence interval of the median."""
    high: float
    pairs: int
    """How many there are."""

    def is_noise(self) -> bool | None:
        """Tell whether the pairs leave open which side is greater; None for too few pairs to judge."""
        return self.low <= 1.0 <= self.high if self.pairs >= FEWEST_PAIRS else None


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


def ratio_of(pairs: Sequence[tuple[float | None, float | None]]) -> Ratio | None:
    """Return second over first of each pair, summed up; None when no pair has both."""
    ratios = [second / first for first, second in pairs if first and second is not None]
    if not ratios:
        return None
    spread = statistics.stdev(ratios) if len(ratios) > 1 else None
    return Ratio(statistics.median(ratios), spread, *interval_of(ratios), len(ratios))


def interval_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest pair of order statistics that holds the true median with ``CONFIDENCE``.

    Of fewer than ``FEWEST_PAIRS`` values their range, which holds it with less.
    """
    ordered = sorted(values)
    dropped = 0
    while confidence(len(ordered), dropped + 1) >= CONFIDENCE:
        dropped += 1
    return ordered[dropped], ordered[-1 - dropped]


def confidence(count: int, dropped: int) -> float:
    """Return the probability that the true median lies within ``count`` values less ``dropped`` at each end."""
    outside = sum(math.comb(count, below) for below in range(dropped + 1))
    return 1 - math.ldexp(outside, 1 - count)


def median_of(values: Sequence[float | None]) -> float | None:
    """Return the median of the values that are there; None when none is."""
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


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
    """Return one comparison for each server and load, in the order they were measured."""
    comparisons: list[Comparison] = []
    for kind in dict.fromkeys(window.kind for window in windows):
        for connections in dict.fromkeys(w.connections for w in windows if w.kind == kind):
            stock, unsnarl = (windows_of(windows, kind, connections, v) for v in (STOCK, UNSNARL))
            figures = {name: figure_of(stock, unsnarl, name) for name in FIGURES}
            comparisons.append(Comparison(kind, connections, figures))
    return comparisons
