"""The differences that count against the scheduler when CPython's own tests are compared."""

from __future__ import annotations

import pytest

from tests.contract.cpython.comparison import Difference
from tests.contract.cpython.suite import EXPLAINED

TO_BE_EXPECTED = next(iter(EXPLAINED))


@pytest.mark.parametrize(
    ("test", "plain", "scheduled", "is_regression"),
    [
        ("some", {"passed"}, {"failed"}, True),
        ("some", {"passed"}, {"passed", "failed"}, True),
        ("some", {"passed", "failed"}, {"failed"}, False),
        ("some", {"passed"}, {"passed"}, False),
        (TO_BE_EXPECTED, {"passed"}, {"failed"}, False),
        (TO_BE_EXPECTED, {"passed"}, {"absent"}, True),
        (TO_BE_EXPECTED, {"passed"}, {"passed", "failed"}, True),
    ],
)
def test_a_difference_counts_unless_it_happens_without_or_has_a_reason(
    test: str, plain: set[str], scheduled: set[str], *, is_regression: bool
) -> None:
    difference = Difference(test, frozenset(plain), frozenset(scheduled), "failed")
    assert difference.is_regression is is_regression
    assert ("REGRESSION" in str(difference)) is is_regression


def test_a_difference_to_be_expected_is_still_named_with_its_reason() -> None:
    difference = Difference(TO_BE_EXPECTED, frozenset({"passed"}), frozenset({"failed"}), "failed")
    assert EXPLAINED[TO_BE_EXPECTED] in str(difference)
