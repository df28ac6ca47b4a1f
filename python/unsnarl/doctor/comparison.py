"""Summarises the runs of each way: medians, spread, and the ratio to stock.

A way is faster or slower only if the medians differ by more than ``LEAST`` and the middle halves of
the runs do not overlap; a smaller difference is noise on a machine under other load. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from unsnarl.doctor.trial import Trial
from unsnarl.statistics import quartiles

LEAST = 0.05
"""The least difference that counts, as a share of the stock time."""

FASTER, SLOWER, SAME, FAILED = "faster", "slower", "same", "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The runs of one way.

    Attributes:
        name: the way's name.
        what: the command that a user would type.
        runs: the number of runs.
        wall_s: median.
        low_s, high_s: the ends of the middle half.
        cpu_s: median of processor time.
        switches: median of context switches.
        ratio: stock's median over this way's: above 1 is faster.
        verdict: FASTER, SLOWER, SAME, or FAILED if the command ended differently than stock.
        failure: how a FAILED command ended; else empty.
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
    failure: str = ""


def outcome(name: str, what: str, trials: Sequence[Trial], stock: Sequence[Trial]) -> Outcome:
    """Summarise the runs of a way, compared with those of stock."""
    walls, stock_walls = [trial.wall_s for trial in trials], [trial.wall_s for trial in stock]
    low, high = quartiles(walls)
    median = statistics.median(walls)
    failure = next((ending(trial) for trial in trials if ends_differently(trial, stock[0])), "")
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
        verdict=FAILED if failure else verdict(walls, stock_walls),
        failure=failure,
    )


def ends_differently(trial: Trial, stock: Trial) -> bool:
    """Tell whether a run ended with another status than the first stock run, or at its time limit."""
    return trial.timed_out or trial.status != stock.status


def ending(trial: Trial) -> str:
    """Return in words how a run ended."""
    return f"not within {trial.wall_s:.0f} s" if trial.timed_out else f"with status {trial.status}"


def verdict(walls: Sequence[float], stock: Sequence[float]) -> str:
    """Tell whether a way is faster or slower than stock beyond noise."""
    (low, high), (stock_low, stock_high) = quartiles(walls), quartiles(stock)
    difference = statistics.median(stock) - statistics.median(walls)
    if difference > LEAST * statistics.median(stock) and high < stock_low:
        return FASTER
    if -difference > LEAST * statistics.median(stock) and low > stock_high:
        return SLOWER
    return SAME
