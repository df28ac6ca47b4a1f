"""The table of statistics, over records of its own kind and over the real ones."""

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unsnarl import gil
from unsnarl.report import gil_stats


@dataclass(frozen=True)
class Wait:
    p50_ns: int
    max_ns: int


@dataclass(frozen=True)
class OfClass:
    name: str
    waits: int
    wait: Wait
    buckets: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Stats:
    classes: tuple[OfClass, ...]
    hand_overs: int
    longest_hold_ns: int
    longest_hold_thread: str | None


STATS = Stats(
    (OfClass("interactive", 1234567, Wait(12_300, 4_000_000)), OfClass("batch", 2, Wait(0, 999))),
    7,
    1_500_000_000,
    None,
)

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


def test_colour_says_the_same() -> None:
    plain = gil_stats.text(STATS)
    coloured = gil_stats.text(STATS, columns=120)
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain
    for word in ("interactive", "1,234,567", "12.3 us", "longest hold thread"):
        assert word in plain
        assert word in coloured


def test_a_thread_may_have_any_name() -> None:
    stats = Stats((), 0, 0, "[red]\n\x1b[31m")
    assert r"[red]\n\x1b[31m" in gil_stats.text(stats)
    assert r"[red]\n\x1b[31m" in gil_stats.text(stats, columns=80)


def test_the_real_statistics_have_a_table() -> None:
    stats = gil.stats()
    table = gil_stats.text(stats)
    assert len(table.splitlines()) > 2 + len(stats.classes)
    assert gil_stats.text(stats, columns=200)


def test_what_is_no_statistics_is_refused() -> None:
    with pytest.raises(TypeError):
        gil_stats.text({})


@given(st.integers(0, 10**15))
@example(999_999)
@example(9_999)
def test_a_duration_has_three_digits_or_more_and_a_unit(value_ns: int) -> None:
    number, unit = gil_stats.duration(value_ns).split()
    size_ns = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number.replace(",", "")) * size_ns == pytest.approx(value_ns, rel=6e-3)
    assert "e" not in number
