"""The verdict on one scene: the ratio of two builds, next to the ratio of each build to itself.

A round holds four figures, all times: ``before1``, ``after1``, ``before2``, ``after2``. A ratio is formed within a
round; of after over before it is the geometric mean of the round's two ratios. Intervals are those of the median ratio
between order statistics (``unsnarl.statistics``), with rounds as the units: they assume no distribution.
Invariant: "faster" and "slower" need the interval of after over before to lie outside both of these: 1, and the
intervals of each build over itself.
Pure: no clock, no process, no output.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unsnarl.statistics import FEWEST_PAIRS, interval_of

RUNS = ("before1", "after1", "before2", "after2")
"""The runs of one round, in the order of the even rounds."""

SAME, FASTER, SLOWER, TOO_FEW = "same within noise", "faster", "slower", "too few pairs"

Round = Mapping[str, float]


class Spread(NamedTuple):
    """The figures of one build over all rounds."""

    median: float
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""


class Interval(NamedTuple):
    """A median ratio and the interval of the median."""

    median: float
    low: float
    high: float


class Judgement(NamedTuple):
    """The comparison of two builds in one scene."""

    before: Spread
    after: Spread
    ratio: Interval
    """After over before: below 1, the later build needs less time."""
    before_noise: Interval
    """The earlier build's second run over its first."""
    after_noise: Interval
    """The later build's second run over its first."""
    rounds: int
    verdict: str


def order(number: int) -> tuple[str, ...]:
    """Return the runs of a round in alternation; the other build goes first in every second round."""
    first, second, third, fourth = RUNS
    return RUNS if number % 2 == 0 else (second, first, fourth, third)


def judge(rounds: Sequence[Round]) -> Judgement | None:
    """Return the judgement on a scene; None when no round has all four figures."""
    complete = [each for each in rounds if all(each.get(name) for name in RUNS)]
    if not complete:
        return None
    ratio = interval([_ratio(each, ("before1", "after1"), ("before2", "after2")) for each in complete])
    before_noise = interval([_ratio(each, ("before1", "before2")) for each in complete])
    after_noise = interval([_ratio(each, ("after1", "after2")) for each in complete])
    return Judgement(
        spread([each[name] for each in complete for name in ("before1", "before2")]),
        spread([each[name] for each in complete for name in ("after1", "after2")]),
        ratio,
        before_noise,
        after_noise,
        len(complete),
        verdict(ratio, before_noise, after_noise) if len(complete) >= FEWEST_PAIRS else TOO_FEW,
    )


def verdict(ratio: Interval, before_noise: Interval, after_noise: Interval) -> str:
    """Return which build needs less time, where the ratio lies outside the noise of both builds."""
    if ratio.high < min(1.0, before_noise.low, after_noise.low):
        return FASTER
    if ratio.low > max(1.0, before_noise.high, after_noise.high):
        return SLOWER
    return SAME


def spread(values: Sequence[float]) -> Spread:
    """Return median and quartiles of at least two values."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def interval(ratios: Sequence[float]) -> Interval:
    """Return the median of the rounds' ratios, with its interval."""
    return Interval(statistics.median(ratios), *interval_of(ratios))


def _ratio(each: Round, *pairs: tuple[str, str]) -> float:
    """Return the geometric mean of the second over the first of each pair of runs."""
    return math.exp(statistics.fmean(math.log(each[second] / each[first]) for first, second in pairs))
