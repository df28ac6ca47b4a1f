"""The cases that people have reported: each program runs and prints the figures that its docstring names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.cases import case, page
from bench.cases.__main__ import added, main, run_once
from unsnarl.statistics import Ratio

ROOT = Path(__file__).resolve().parents[2]
CASES = case.every()


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_a_program_prints_the_figures_of_its_docstring(one: case.Case) -> None:
    assert set(run_once(one, page.STOCK, 0.1)) == {figure.name for figure in one.figures}


def test_a_docstring_without_its_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text('"""A case."""\n')
    with pytest.raises(case.CaseError, match=r"program\.py: its docstring needs"):
        case.read(path)


def test_a_figure_stands_against_another_one_of_its_program(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    head = '"""A case.\n\nReported: somewhere\nFigure: own, ms, less is better, against other: ours\n'
    path.write_text(head + 'Figure: other, ms, less is better: theirs\n"""\n')
    assert [(one.name, one.against) for one in case.read(path).figures] == [("own", "other"), ("other", "")]
    path.write_text(head + '"""\n')
    with pytest.raises(case.CaseError, match=r"program\.py: own is against 'other', which is no figure"):
        case.read(path)


@pytest.mark.parametrize(
    ("low", "high", "less", "judged"),
    [
        (0.1, 0.2, True, "better"),
        (0.1, 0.2, False, "worse"),
        (0.9, 1.1, True, "no difference"),
        (2, 3, True, "worse"),
        (0.997, 0.999, True, "no difference"),
    ],
)
def test_a_figure_is_judged_by_its_interval(low: float, high: float, less: bool, judged: str) -> None:
    assert page.judged(Ratio((low + high) / 2, 0.1, low, high, 7), less) == judged


def test_what_unsnarl_makes_worse_comes_first() -> None:
    one, other = CASES[0], CASES[1]

    def runs(measured: case.Case, factor: float) -> list[dict[str, Any]]:
        figures = {figure.name: 1.0 for figure in measured.figures}
        changed = {figure.name: factor if figure.less else 1 / factor for figure in measured.figures}
        return [{page.STOCK: figures, page.RUN: changed, page.PATCH: changed}] * 5

    shown = page.page(
        {"python": "3.13.0", "pairs": 5, "machine": {"processors": 2, "load": 0.5},
         "runs": {one.name: runs(one, 0.5), other.name: runs(other, 2.0)}},
        CASES,
    )  # fmt: skip
    assert shown.index("| worse |") < shown.index("| better |")
    assert all(measured.reported in shown for measured in CASES)


def test_two_ways_inside_one_program_are_compared_with_each_other() -> None:
    path = ROOT / "bench" / "cases" / "programs" / "program.py"
    figures = (case.Figure("theirs", "ms", True, ""), case.Figure("ours", "ms", True, "", "theirs"))
    one = case.Case("program", "A case", "somewhere", figures, path)
    made = {"theirs": 8.0, "ours": 2.0}
    runs = [{page.STOCK: made, page.RUN: made, page.PATCH: made}] * 5
    shown = page.page(
        {"python": "3.13.0", "pairs": 5, "machine": {"processors": 2, "load": 0.5}, "runs": {"program": runs}}, [one]
    )
    starts, inside = shown.split("## Two ways inside one program")
    same = "1.00 (1.00 – 1.00)"
    assert f"| `program` | theirs (ms, less is better) | 8.0 | 8.0 | – | {same} | {same} | no difference |" in starts
    assert "ours" not in starts
    ratio = "0.25 (0.25 – 0.25)"
    assert f"| `program` | ours (ms, less is better) | theirs | 2.0 | 8.0 | {ratio} | {ratio} | better |" in inside


def test_cases_that_are_measured_later_keep_the_others() -> None:
    kept = {"python": "3.13.0", "pairs": 5, "machine": {"processors": 2, "load": 0.5}, "runs": {"a": [1], "b": [2]}}
    made = added(kept, {"machine": {"load": 9.0}, "runs": {"b": [3]}})
    assert (made["runs"], made["machine"]["load"]) == ({"a": [1], "b": [3]}, 0.5)
    made["runs"] = {}
    assert "`b` was measured later, with a load of 9.0." in page.page(made, CASES)


def test_kept_runs_render() -> None:
    for path in sorted((ROOT / "bench" / "results").glob("cases-*.json")):
        assert page.page(json.loads(path.read_text()), CASES).startswith("# Cases that people have reported")


@pytest.mark.parametrize("words", [["--only", "nothing"], ["--pairs", "0"], ["--seconds", "x"], ["--wrong"]])
def test_bad_input_gets_one_clear_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main(words)
    except SystemExit as end:
        status = end.code
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 2
