"""The table of statistics, of invented counts and of the real ones."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unsnarl import _native, gil, gil_counts
from unsnarl.report import gil_stats

STATS: dict[str, Any] = {
    "classes": [
        {"name": "interactive", "waits": 1234567, "wait_p50_ns": 12_300, "wait_max_ns": 4_000_000},
        {"name": "batch", "waits": 2, "wait_p50_ns": 0, "wait_max_ns": 999},
    ],
    "hand_overs": 7,
    "longest_hold_ns": 1_500_000_000,
    "longest_hold_thread": None,
}

EXPECTED = """\
unsnarl: TITLE
name             waits  wait p50  wait max
interactive  1,234,567   12.3 us   4.00 ms
batch                2      0 ns    999 ns
hand overs           7
longest hold         1.50 s
longest hold thread  -
"""


def test_the_plain_table() -> None:
    assert gil_stats.plain("TITLE", *gil_stats.tables(STATS)) == EXPECTED


def test_a_wide_table_has_a_column_for_each_class() -> None:
    wide = {f"number {index}": 123_456_789 for index in range(9)}
    stats: dict[str, Any] = {"classes": [{"name": name, **wide, "wait_counts": (1, 2)} for name in gil_counts.CLASSES]}
    lines = gil_stats.plain("TITLE", *gil_stats.tables(stats)).splitlines()
    assert lines[1].split() == ["name", *gil_counts.CLASSES]
    assert lines[2].split() == ["number", "0", *["123,456,789"] * 4]
    assert max(map(len, lines)) <= gil_stats.COLUMNS
    assert "wait counts" not in "".join(lines)


def test_a_thread_may_have_any_name() -> None:
    stats: dict[str, Any] = {**STATS, "longest_hold_thread": "[red]\n\x1b[31m"}
    assert r"[red]\n\x1b[31m" in gil_stats.text(stats)


def test_the_real_statistics_have_a_table() -> None:
    counts = gil_counts.named(_native.stats())
    table = gil_stats.text(counts)
    assert len(table.splitlines()) > 2 + len(counts["classes"])


def test_the_table_and_the_api_name_the_same_things() -> None:
    stats = gil.stats()
    for counters in (None, _native.stats()):
        counts = gil_counts.named(counters)
        assert list(counts) == list(stats.__dataclass_fields__)
        for row in counts["classes"]:
            assert list(row) == list(stats.classes[0].__dataclass_fields__)


@given(st.integers(0, 10**15))
@example(999_999)
@example(9_999)
def test_a_duration_has_three_digits_or_more_and_a_unit(value_ns: int) -> None:
    number, unit = gil_stats.duration(value_ns).split()
    size_ns = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number.replace(",", "")) * size_ns == pytest.approx(value_ns, rel=6e-3)
    assert "e" not in number
