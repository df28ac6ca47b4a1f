"""The growth of a time with a size: the exponent of the power that fits best."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import NamedTuple

FEWEST = 3
"""Sizes; through two points every power fits."""


class Power(NamedTuple):
    """The exponent of a power, and how well it is known."""

    exponent: float
    error: float
    """Standard error of the slope: what the points' distances from the line leave open."""


def power(times_by_size: Mapping[int, float]) -> Power | None:
    """Return the slope of a line through the logarithms of sizes and times; None for too few sizes.

    The error is that of a simple linear regression: the root of the sum of the squared residuals over n - 2, over
    the sum of the squared distances of the sizes' logarithms from their mean.
    """
    positive = {size: time for size, time in times_by_size.items() if time > 0}
    if len(positive) < FEWEST:
        return None
    sizes = [math.log(size) for size in positive]
    times = [math.log(time) for time in positive.values()]
    slope, intercept = statistics.linear_regression(sizes, times)
    residuals = sum((time - slope * size - intercept) ** 2 for size, time in zip(sizes, times, strict=True))
    spread = statistics.variance(sizes) * (len(sizes) - 1)
    return Power(slope, math.sqrt(residuals / (len(sizes) - 2) / spread))


def exponent(times_by_size: Mapping[int, float]) -> float | None:
    """Return the exponent alone; None for too few sizes."""
    found = power(times_by_size)
    return None if found is None else found.exponent
