"""Tables of the results pages: figures stand to the right, words to the left."""

from __future__ import annotations

from bench.markdown import table


def test_a_column_of_figures_is_aligned_right_and_one_of_words_left() -> None:
    rows = [("a", "**0.97** (0.9 to 1)", "loss", "–"), ("b", "~1", "same", "≤ 3"), ("c", "–", "3 tests differ", "2")]
    assert table(("name", "ratio", "verdict", "few"), rows).splitlines()[1] == "| --- | ---: | --- | ---: |"


def test_a_table_without_rows_says_so() -> None:
    assert table(("name",), []) == "Not measured.\n"
