"""Judges a variant against stock, relative to the noise of stock against itself.

Each pair of a case holds two identical stock runs and one run of each variant. The A/A ratio of a pair is second stock
over first stock; a variant's ratio is the variant over the mean of both stock runs. Intervals are those of the median
between order statistics (`unsnarl.statistics`), which assume no distribution.

| verdict | when |
|---|---|
| loss | the variant's interval lies below the bound and below the A/A interval |
| gain | it lies above 1 / bound and above the A/A interval |
| same | it lies above the bound, and neither of the above |
| within noise | the interval reaches below the bound, but not outside of what the A/A pair shows |
| too few pairs | fewer pairs than the interval needs |

Pure: no clock, no process, no output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unsnarl.statistics import FEWEST_PAIRS, Ratio, ratio_of

BOUND = 0.97
"""The least ratio to stock that is not a loss."""

LOSS, GAIN, SAME, NOISE, TOO_FEW = "loss", "gain", "same", "within noise", "too few pairs"


class Judged(NamedTuple):
    """A variant's ratio (above 1 is better), the A/A ratio of the same pairs, and the verdict."""

    ratio: Ratio
    again: Ratio
    verdict: str


def judge(
    stock: Sequence[float],
    again: Sequence[float],
    variant: Sequence[float],
    *,
    more_is_better: bool,
    bound: float = BOUND,
) -> Judged | None:
    """Return the verdict on ``variant``; all three in the order of their pairs. None when no pair has all three."""
    means = [(first + second) / 2 for first, second in zip(stock, again, strict=True)]
    own = _oriented(list(zip(means, variant, strict=True)), more_is_better)
    same = _oriented(list(zip(stock, again, strict=True)), more_is_better)
    if own is None or same is None:
        return None
    return Judged(own, same, _verdict(own, same, bound))


def _oriented(pairs: list[tuple[float, float]], more_is_better: bool) -> Ratio | None:
    return ratio_of(pairs if more_is_better else [(second, first) for first, second in pairs])


def _verdict(own: Ratio, same: Ratio, bound: float) -> str:
    if own.pairs < FEWEST_PAIRS:
        return TOO_FEW
    if own.high < min(bound, same.low):
        return LOSS
    if own.low > max(1 / bound, same.high):
        return GAIN
    return SAME if own.low >= bound else NOISE
