"""Statistics of repeated measurements: ratios within pairs, their confidence, growth exponents.

Pure: numbers in, numbers out; no clock, no process. The demonstration, the laboratory, the doctor
and the benchmarks all use these functions.

A ratio is formed inside a pair, where both sides ran on the same machine in the same state, and is
then summarised over the pairs; its spread is the standard deviation of the pairs' ratios. A difference
counts as noise when 1 lies in the confidence interval of the median ratio. The interval lies between
order statistics (W. R. Thompson, Annals of Mathematical Statistics 7, 1936), so it assumes nothing
about the distribution of the measurements; for five pairs it is their range. Fewer pairs cannot reach
``CONFIDENCE`` and are not judged: of three pairs that differ in nothing, a quarter lie on one side of 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

CONFIDENCE = 0.9375
"""The probability that the range of five values contains the true median: 1 - 2 / 2**5."""

FEWEST_PAIRS = 5
"""The fewest pairs whose range contains the true median with ``CONFIDENCE``; fewer are not judged."""

FEWEST_SIZES = 3
"""The fewest sizes for a fit: every power fits two points."""


class Ratio(NamedTuple):
    """The ratio of the second of two variants to the first, over several pairs."""

    median: float
    spread: float | None
    """Standard deviation over the pairs; None for a single pair."""
    low: float
    """Lower end of the confidence interval of the median."""
    high: float
    pairs: int
    """The number of pairs."""

    def is_noise(self) -> bool | None:
        """Tell whether the pairs do not decide which side is greater; None for too few pairs."""
        return self.low <= 1.0 <= self.high if self.pairs >= FEWEST_PAIRS else None


class Power(NamedTuple):
    """The exponent of a fitted power, with its standard error."""

    exponent: float
    error: float
    """Standard error of the slope, from the points' distances to the line."""


def ratio_of(pairs: Sequence[tuple[float | None, float | None]]) -> Ratio | None:
    """Return the ratio of second to first over the pairs that have both; None if there is no such pair."""
    ratios = [second / first for first, second in pairs if first and second is not None]
    if not ratios:
        return None
    spread = statistics.stdev(ratios) if len(ratios) > 1 else None
    return Ratio(statistics.median(ratios), spread, *interval_of(ratios), len(ratios))


def interval_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest pair of order statistics that contains the true median with ``CONFIDENCE``.

    For fewer than ``FEWEST_PAIRS`` values it is their range, whose confidence is lower.
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
    """Return the median of the values that are not None; None if there is none."""
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile, which enclose the middle half of the values."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def power(times_by_size: Mapping[int, float]) -> Power | None:
    """Return the slope of the regression line of log time over log size; None for too few sizes.

    The error is that of a simple linear regression: the root of the sum of the squared residuals over n - 2, over
    the sum of the squared distances of the sizes' logarithms from their mean.
    """
    positive = {size: time for size, time in times_by_size.items() if time > 0}
    if len(positive) < FEWEST_SIZES:
        return None
    sizes = [math.log(size) for size in positive]
    times = [math.log(time) for time in positive.values()]
    slope, intercept = statistics.linear_regression(sizes, times)
    residuals = sum((time - slope * size - intercept) ** 2 for size, time in zip(sizes, times, strict=True))
    spread = statistics.variance(sizes) * (len(sizes) - 1)
    return Power(slope, math.sqrt(residuals / (len(sizes) - 2) / spread))


def exponent(times_by_size: Mapping[int, float]) -> float | None:
    """Return the exponent without its error; None for too few sizes."""
    found = power(times_by_size)
    return None if found is None else found.exponent
