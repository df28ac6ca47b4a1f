"""Ratios are formed within pairs, and a difference that the pairs do not decide is noise."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.demo.comparison import compare
from unsnarl.demo.hogs import Reading, jain, rates
from unsnarl.demo.measurement import Window
from unsnarl.demo.variant import STOCK, UNSNARL
from unsnarl.statistics import CONFIDENCE, FEWEST_PAIRS, Ratio, confidence, interval_of, median_of, ratio_of

positive = st.floats(min_value=1e-3, max_value=1e6)


def window(variant: str, pair: int, rate: float, *, kind: str = "stdlib", c: int = 1) -> Window:
    return Window(kind, variant, c, pair, rate, 1e6 / rate, 2e6 / rate, 10.0)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=9))
def test_a_ratio_lies_between_those_of_its_pairs(pairs: list[tuple[float, float]]) -> None:
    ratio = ratio_of(pairs)
    assert ratio is not None
    assert ratio.low <= ratio.median <= ratio.high
    assert ratio.spread is not None
    assert ratio.spread >= 0


@given(st.lists(positive, min_size=1, max_size=9), positive)
def test_what_drifts_on_both_sides_alike_leaves_the_ratio_alone(drift: list[float], factor: float) -> None:
    ratio = ratio_of([(value, value * factor) for value in drift])
    assert ratio is not None
    assert abs(ratio.median / factor - 1) < 1e-9


def test_a_pair_that_lacks_a_side_is_left_out() -> None:
    assert ratio_of([(None, 1.0), (2.0, None), (2.0, 6.0)]) == Ratio(3.0, None, 3.0, 3.0, 1)


def test_nothing_over_nothing_is_no_ratio() -> None:
    assert ratio_of([]) is None
    assert ratio_of([(0.0, 5.0)]) is None


@given(st.lists(positive, min_size=1, max_size=40))
def test_the_interval_holds_the_median_and_lies_within_the_range(values: list[float]) -> None:
    low, high = interval_of(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


@pytest.mark.parametrize(("count", "dropped"), [(1, 0), (3, 0), (5, 0), (9, 1), (15, 3), (25, 7)])
def test_the_interval_narrows_as_pairs_are_added(count: int, dropped: int) -> None:
    assert interval_of([float(i) for i in range(count)]) == (dropped, count - 1 - dropped)


def test_the_range_of_five_has_exactly_the_confidence_asked_for() -> None:
    assert confidence(5, 0) == CONFIDENCE


def test_noise_is_when_the_pairs_leave_it_open() -> None:
    assert Ratio(1.1, 0.2, 0.9, 1.3, FEWEST_PAIRS).is_noise()
    assert Ratio(1.1, 0.05, 1.05, 1.15, FEWEST_PAIRS).is_noise() is False
    assert Ratio(0.9, 0.05, 0.8, 0.95, FEWEST_PAIRS).is_noise() is False


def test_too_few_pairs_are_not_judged() -> None:
    for count in range(1, FEWEST_PAIRS):
        ratio = ratio_of([(1.0, 2.0)] * count)
        assert ratio is not None
        assert (ratio.pairs, ratio.median, ratio.is_noise()) == (count, 2.0, None)
    assert confidence(FEWEST_PAIRS, 0) == CONFIDENCE > confidence(FEWEST_PAIRS - 1, 0)


def test_medians_leave_out_what_was_not_measured() -> None:
    assert median_of([None, 3.0, 1.0, 2.0]) == 2.0
    assert median_of([None]) is None


def test_windows_are_paired_whatever_their_order() -> None:
    windows = [
        window(UNSNARL, 0, 100.0),
        window(STOCK, 0, 10.0),
        window(STOCK, 1, 20.0),
        window(UNSNARL, 1, 400.0),
    ]
    (comparison,) = compare(windows)
    figure = comparison.figures["requests_per_s"]
    assert (figure.stock, figure.unsnarl) == (15.0, 250.0)
    assert figure.ratio == Ratio(15.0, statistics.stdev([10.0, 20.0]), 10.0, 20.0, 2)


def test_each_server_and_load_is_compared_by_itself() -> None:
    windows = [
        window(variant, 0, 10.0, kind=kind, c=c)
        for variant in (STOCK, UNSNARL)
        for c in (1, 10)
        for kind in ("stdlib", "gunicorn")
    ]
    loads = [(comparison.kind, comparison.connections) for comparison in compare(windows)]
    assert loads == [("stdlib", 1), ("stdlib", 10), ("gunicorn", 1), ("gunicorn", 10)]


@given(st.lists(positive, min_size=1, max_size=50))
def test_the_fairness_index_is_between_one_share_and_equality(shares: list[float]) -> None:
    assert 1 / len(shares) - 1e-9 <= jain(shares) <= 1 + 1e-9


def test_the_fairness_index_of_the_extremes() -> None:
    assert jain([3.0, 3.0, 3.0]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain([]) == 1.0


def test_rates_are_per_second_of_the_readings_own_time() -> None:
    assert rates(Reading(10.0, (5, 0)), Reading(12.0, (9, 3))) == [2.0, 1.5]
