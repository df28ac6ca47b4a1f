"""What the runs of each way come to: medians, spread, and the ratio to stock.

A way is faster (or slower) only if the medians differ by more than ``LEAST`` and the
middle halves of the runs do not overlap: less is noise on a machine that does other
things as well.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from unsnarl.doctor.trial import Trial

LEAST = 0.05
"""Of the stock time."""

FASTER, SLOWER, SAME = "faster", "slower", "same"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The runs of one way.

    Attributes:
        name: the way's.
        what: what a user would call.
        runs: how many.
        wall_s: median.
        low_s, high_s: the middle half.
        cpu_s: median of processor time.
        switches: median of context switches.
        ratio: stock's median over this one's: above 1 is faster.
        verdict: FASTER, SLOWER or SAME.
    """

    name: str
    what: str
    runs: int
    wall_s: float
    low_s: float
    high_s: float
    cpu_s: float
    switches: float
    ratio: float
    verdict: str


def outcome(name: str, what: str, trials: Sequence[Trial], stock: Sequence[Trial]) -> Outcome:
    """Sum the runs of a way up against those of stock."""
    walls, stock_walls = [trial.wall_s for trial in trials], [trial.wall_s for trial in stock]
    low, high = middle(walls)
    median = statistics.median(walls)
    return Outcome(
        name=name,
        what=what,
        runs=len(trials),
        wall_s=median,
        low_s=low,
        high_s=high,
        cpu_s=statistics.median(trial.cpu_s for trial in trials),
        switches=statistics.median(trial.switches for trial in trials),
        ratio=statistics.median(stock_walls) / median if median else 1.0,
        verdict=verdict(walls, stock_walls),
    )


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Return the quartiles of some values."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def verdict(walls: Sequence[float], stock: Sequence[float]) -> str:
    """Say whether a way is faster than stock, beyond noise."""
    (low, high), (stock_low, stock_high) = middle(walls), middle(stock)
    difference = statistics.median(stock) - statistics.median(walls)
    if difference > LEAST * statistics.median(stock) and high < stock_low:
        return FASTER
    if -difference > LEAST * statistics.median(stock) and low > stock_high:
        return SLOWER
    return SAME
