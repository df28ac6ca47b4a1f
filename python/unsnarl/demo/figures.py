"""Formats figures with three significant digits in a fitting unit. Pure."""

from __future__ import annotations

from unsnarl.statistics import Ratio

NONE = "-"
"""Shown for a figure that was not measured."""

TOO_FEW = "?"
"""Shown after a ratio of too few pairs to judge."""


def digits(value: float) -> str:
    """Return ``value`` with three significant digits and thousands separators: 0.0123, 4.56, 12,300."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:#.3g}".rstrip(".")


def count(value: float | None) -> str:
    """Return a rate or an amount, such as ``12,300``."""
    return NONE if value is None else digits(value)


def duration(value_us: float | None) -> str:
    """Return a time, given in microseconds, in a fitting unit, such as ``12.3 ms``."""
    if value_us is None:
        return NONE
    for limit_us, unit_us, unit in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms")):
        if float(f"{value_us:.3g}") < limit_us:
            return f"{digits(value_us / unit_us)} {unit}"
    return f"{digits(value_us / 1e6)} s"


def times(ratio: Ratio | None) -> str:
    """Return a ratio with its relative spread, such as ``27.3× ±4%``, marked as noise or as too few pairs."""
    if ratio is None:
        return NONE
    text = f"{factor(ratio)} {spread(ratio)}".rstrip()
    is_noise = ratio.is_noise()
    return f"{text} {TOO_FEW}" if is_noise is None else f"≈ {text}" if is_noise else text


def marked(ratio: Ratio | None) -> str:
    """Return a ratio without its spread, marked as noise or as too few pairs, at most 12 characters."""
    if ratio is None:
        return NONE
    is_noise = ratio.is_noise()
    return f"{factor(ratio)} {TOO_FEW}" if is_noise is None else f"≈ {factor(ratio)}" if is_noise else factor(ratio)


def spread(ratio: Ratio | None) -> str:
    """Return the relative spread of a ratio, such as ``±4%``; an empty text for a single pair."""
    if ratio is None or ratio.spread is None:
        return ""
    share = ratio.spread / ratio.median if ratio.median else float("inf")
    return f"±{share:.0%}" if share < 1 else "±>99%"


def factor(ratio: Ratio) -> str:
    """Return a ratio alone, such as ``27.3×`` or ``0.037×``."""
    return f"{digits(ratio.median) if ratio.median >= 0.1 else f'{ratio.median:.2g}'}×"
