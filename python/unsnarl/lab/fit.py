"""The growth of a time with a size: the exponent of the power that fits best."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

FEWEST = 3
"""Sizes; through two points every power fits."""


def exponent(times_by_size: Mapping[int, float]) -> float | None:
    """Return the slope of a line through the logarithms of sizes and times; None for too few sizes."""
    positive = {size: time for size, time in times_by_size.items() if time > 0}
    if len(positive) < FEWEST:
        return None
    sizes = [math.log(size) for size in positive]
    times = [math.log(time) for time in positive.values()]
    return statistics.linear_regression(sizes, times).slope
