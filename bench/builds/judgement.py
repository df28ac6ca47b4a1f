"""The verdict on one scene: the ratio of two builds, next to the ratio of each build to itself.

A round holds four figures, all times: ``before1``, ``after1``, ``before2``, ``after2``. A ratio is formed within a
round. Intervals are percentile bootstrap intervals of the median ratio (B. Efron, Annals of Statistics 7, 1979),
with rounds as the units that are drawn, and with a fixed seed: the same data always give the same interval.
Invariant: "faster" and "slower" need the interval of after over before to lie outside both of these: 1, and the
intervals of each build over itself.
Pure: no clock, no process, no output.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unsnarl.statistics import FEWEST_PAIRS

RUNS = ("before1", "after1", "before2", "after2")
"""The runs of one round, in the order of the even rounds."""

SAME, FASTER, SLOWER, TOO_FEW = "same within noise", "faster", "slower", "too few pairs"

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 1979

Round = Mapping[str, float]


class Spread(NamedTuple):
    """The figures of one build over all rounds."""

    median: float
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""


class Interval(NamedTuple):
    """A median ratio and its bootstrap interval."""

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
    ratio = bootstrap([_ratios(each, ("before1", "after1"), ("before2", "after2")) for each in complete])
    before_noise = bootstrap([_ratios(each, ("before1", "before2")) for each in complete])
    after_noise = bootstrap([_ratios(each, ("after1", "after2")) for each in complete])
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


def bootstrap(ratios: Sequence[Sequence[float]]) -> Interval:
    """Return the median of the ratios of all rounds, with its bootstrap interval."""
    chance = random.Random(SEED)
    medians = sorted(_median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    outside = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return Interval(_median(ratios), medians[outside], medians[-1 - outside])


def _median(ratios: Sequence[Sequence[float]]) -> float:
    return statistics.median(ratio for each in ratios for ratio in each)


def _ratios(each: Round, *pairs: tuple[str, str]) -> list[float]:
    """Return the second over the first of each pair of runs."""
    return [each[second] / each[first] for first, second in pairs]
