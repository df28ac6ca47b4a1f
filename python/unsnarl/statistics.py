"""Statistics of repeated measurements: ratios within pairs, their confidence, sequential verdicts, growth exponents.

Pure: numbers in, numbers out; no clock, no process. The demonstration, the laboratory, the doctor
and the benchmarks all use these functions.

A ratio is formed inside a pair, where both sides ran on the same machine in the same state, and is
then summarised over the pairs; its spread is the standard deviation of the pairs' ratios. A difference
counts as noise when 1 lies in the confidence interval of the median ratio. The interval lies between
order statistics (W. R. Thompson, Annals of Mathematical Statistics 7, 1936), so it assumes nothing
about the distribution of the measurements; for five pairs it is their range. Fewer pairs cannot reach
``CONFIDENCE`` and are not judged: of three pairs that differ in nothing, a quarter lie on one side of 1.

A fixed number of pairs is judged by that interval. A caller that looks after each pair and stops when it sees enough
uses ``decide``, since a repeated look at a fixed-size interval errs more often with each look. ``decide`` is a test by
betting (G. Shafer, Testing by betting, Journal of the Royal Statistical Society A 184, 2021; A. Ramdas and others,
Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38, 2023). A gambler starts with 1 and
stakes shares of the capital on the sign of each pair. If both sides are the same and a coin decides which side of a
pair runs first, each sign is a fair coin, whatever the noise, its tails, or the drift of the machine. The capital is
then a martingale, which ever reaches 1 / error with a probability of at most ``error`` (J. Ville, 1939). So the error
rate holds for any rule of stopping.

Things that don't work:

- alternated order under a steady drift: the signs alternate too, and are no fair coins;
- the overlap of quartiles or of fixed-size intervals, checked after each pair;
- a pair that was selected because of its value.
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

ERROR = 0.05
"""The largest probability that a group of sequential verdicts contains a false difference."""

STAKES = ((1.0, 0.36), (0.8, 0.07), (0.5, 0.07))
"""Stakes on one side and the share of the capital that follows each; the other side has the same shares.

The first needs the fewest pairs where all signs agree (7 for an error of 0.02), and never recovers from one pair that
disagrees; the others are for signs of which about nine or three in four agree.
"""

LOWER, HIGHER, SAME = "lower", "higher", "same"
"""Decisions on the second side of the pairs."""

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


def decide(pairs: Sequence[tuple[float, float]], least: float, error: float = ERROR) -> str | None:
    """Decide between LOWER, HIGHER and SAME on the second side of pairs; None while the pairs leave it open.

    May be called after each pair, and the caller may stop whenever it likes. The two sides of each pair must be run in
    an order that a coin decides.

    - LOWER, HIGHER: the sides differ, and the median ratio by more than the share ``least``. If both sides are the
      same, the probability that any call returns one of these is at most ``error``.
    - SAME: the median ratio lies within ``least``. If the true median does not, the probability is at most ``error``.
    """
    if evidence(pairs) >= 1 / error:
        factor = _median_ratio(pairs)
        if factor * (1 + least) < 1:
            return LOWER
        if factor > 1 + least:
            return HIGHER
    if not least:
        return None
    is_below = evidence_below(pairs, 1 + least) >= 1 / error
    is_above = evidence_below([(second, first) for first, second in pairs], 1 + least) >= 1 / error
    return SAME if is_below and is_above else None


def evidence(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the capital of a gambler who bets that the two sides differ: 1 at the start, 20 is strong evidence."""
    lower, higher = _signs(pairs, 1.0)
    return sum(share * (_capital(stake, lower, higher) + _capital(stake, higher, lower)) for stake, share in STAKES)


def evidence_below(pairs: Sequence[tuple[float, float]], factor: float) -> float:
    """Return the capital of a gambler who bets that the second side is below ``factor`` times the first."""
    lower, higher = _signs(pairs, factor)
    return sum(2 * share * _capital(stake, lower, higher) for stake, share in STAKES)


def _signs(pairs: Sequence[tuple[float, float]], factor: float) -> tuple[int, int]:
    """Count the pairs whose second side is below and above ``factor`` times the first."""
    lower = sum(second < factor * first for first, second in pairs)
    return lower, sum(second > factor * first for first, second in pairs)


def _capital(stake: float, won: int, lost: int) -> float:
    return (1 + stake) ** won * (1 - stake) ** lost


def _median_ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(_quotient(second, first) for first, second in pairs)


def _quotient(second: float, first: float) -> float:
    """Return second / first, where nothing over nothing is no difference."""
    if first:
        return second / first
    return math.inf if second else 1.0


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
