"""Figures have three significant digits and a fitting unit, and noise is marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.demo import figures
from unsnarl.statistics import Ratio


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.00"), (0.0123, "0.0123"), (4.5, "4.50"), (123.4, "123"), (999.6, "1,000"), (12345, "12,300")],
)
def test_three_digits_count(value: float, text: str) -> None:
    assert figures.digits(value) == text


@given(st.floats(min_value=1e-4, max_value=1e9))
def test_no_figure_is_off_by_more_than_its_last_digit(value: float) -> None:
    assert abs(float(figures.digits(value).replace(",", "")) / value - 1) < 0.0051


@pytest.mark.parametrize(
    ("value_us", "text"),
    [(0.5, "0.500 µs"), (12.34, "12.3 µs"), (999.7, "1.00 ms"), (45_000, "45.0 ms"), (2.5e6, "2.50 s"), (None, "-")],
)
def test_a_duration_has_the_unit_that_suits_it(value_us: float | None, text: str) -> None:
    assert figures.duration(value_us) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Ratio(27.3, 1.365, 26.0, 29.0, 5), "27.3× ±5%"),
        (Ratio(0.0371, 0.003, 0.03, 0.04, 5), "0.037× ±8%"),
        (Ratio(1.01, 0.05, 0.97, 1.06, 5), "≈ 1.01× ±5%"),
        (Ratio(3.0, None, 3.0, 3.0, 1), "3.00× ?"),
        (Ratio(3.0, 0.3, 2.9, 3.3, 4), "3.00× ±10% ?"),
        (Ratio(0.0033, 0.1, 0.003, 0.2, 5), "0.0033× ±>99%"),
        (None, "-"),
    ],
)
def test_a_ratio_shows_its_spread_and_whether_it_is_noise(ratio: Ratio | None, text: str) -> None:
    assert figures.times(ratio) == text
