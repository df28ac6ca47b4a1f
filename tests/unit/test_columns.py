"""Tables and sentences fit the columns, with whole words, whatever they hold."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.report.columns import LEAST, table, wrapped

FIGURES = [["thread", "running", "longest wait"], ["worker-1 … worker-50", "5.00 ms", "1.20 s"]]
WORDS = st.text("abcde-/", min_size=1, max_size=12)
CELLS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


def test_a_table_that_fits_is_one_line_a_row() -> None:
    assert table(FIGURES, 80) == [
        "thread                running  longest wait",
        "worker-1 … worker-50  5.00 ms        1.20 s",
    ]


def test_a_narrower_table_has_headings_of_several_lines() -> None:
    assert table([["name", "longest wait"], ["a" * 30, "1.20 s"]], 40) == [
        f"{'':30}  longest",
        f"{'name':30}     wait",
        f"{'a' * 30}   1.20 s",
    ]


def test_long_names_take_several_lines_and_the_figures_are_on_the_last() -> None:
    rows = [["where", "A", "B"], ["waiting for work or for other threads in `main`", "5.00 ms", "1.20 s"]]
    assert table(rows, 50) == [
        "where                                A       B",
        "waiting for work or for other",
        "  threads in `main`            5.00 ms  1.20 s",
    ]


def test_names_without_room_have_a_line_of_their_own() -> None:
    rows = [["name", *"ABCDEFG"], ["pool_" * 10, *["1.00 ms"] * 7]]
    lines = table(rows, 72)
    assert lines[2] == "pool_" * 10
    assert lines[3].split() == ["1.00", "ms"] * 7


def test_a_row_that_is_wider_than_all_becomes_a_sentence() -> None:
    rows = [["name", *(f"heading {at}" for at in range(9))], ["row", *["123,456,789"] * 9]]
    text = " ".join(table(rows, 40))
    assert all(len(line) <= 40 for line in table(rows, 40))
    assert "heading 8 123,456,789" in re.sub(r"\s+", " ", text)


def test_a_sentence_without_columns_is_one_line() -> None:
    assert wrapped("  x " * 60, None) == ["  x " * 60]


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=2, max_size=5), st.sampled_from([40, 80, 200]))
def test_no_word_is_lost_or_broken_and_no_line_is_too_long(rows: list[list[str]], columns: int) -> None:
    lines = table(rows, columns)
    assert all(len(line) <= columns for line in lines)
    shown = " ".join(lines).split()
    for row in rows[1:]:
        for word in " ".join(row).split():
            assert any(word in part for part in shown), (word, lines)


@given(CELLS, st.integers(LEAST, 200))
def test_a_sentence_keeps_its_words(sentence: str, columns: int) -> None:
    lines = wrapped(sentence, columns)
    assert all(len(line) <= columns for line in lines)
    assert " ".join(lines).split() == sentence.split()


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    assert wrapped("a wait of the whole process took 12.50 ms each", 40)[0].endswith("took")


@pytest.mark.parametrize("columns", [40, 80])
def test_a_path_that_is_wider_continues_after_a_slash(columns: int) -> None:
    path = "/srv/" + "directory/" * 12 + "file.py:3"
    lines = wrapped(f"at {path}", columns)
    assert all(len(line) <= columns for line in lines)
    assert "".join(line.strip() for line in lines).replace("at/", "at /") == f"at {path}"
