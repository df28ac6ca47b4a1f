"""``scripts/crater``: what results come to, in the exit status and on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.crater import manifest, page, running
from bench.crater.__main__ import explained, status_of, versions
from bench.crater.manifest import Suite

ROOT = Path(__file__).resolve().parents[2]


def result(**more: Any) -> dict[str, Any]:
    """Return a result in which nothing differs."""
    way = {"status": 0, "wall_s": 1.0, "passed": 3, "failed": 0, "skipped": 1}
    same: dict[str, Any] = {
        "suite": "thing", "version": "1", "python": "3.13.0", "without": {}, "flaky": [], "differences": [],
        "ways": dict.fromkeys(running.WAYS, way), "failing": [], "warm": None,
    }  # fmt: skip
    return same | more


def difference(verdict: str) -> dict[str, Any]:
    return {"test": "tests/a.py::b|c", "way": "unsnarl run", "plain": "passed", "outcome": "failed", "verdict": verdict}


def test_a_run_without_any_suite_counts_as_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    unrun = {"suite": "third", "version": "1", "python": "3.13.0", "unprepared": "no source"}
    assert status_of([result(), unrun]) == 0
    assert status_of([result(differences=[difference("differs")]), unrun]) == 1
    assert capsys.readouterr().err == ""
    assert status_of([unrun, unrun]) == 77
    assert capsys.readouterr().err == "error: no suite could be run\nhint: no source\n"
    assert status_of([result(), unrun, unrun]) == 77
    assert capsys.readouterr().err == "error: only 1 of 3 suites could be run\nhint: no source\n"


def test_the_page_shows_losses_first_and_what_could_not_be_run() -> None:
    shown = page.page(
        [
            result(),
            result(suite="other", differences=[difference("differs")], flaky=["x::y"]),
            {"suite": "third", "version": "1", "python": "3.13.0", "unprepared": "no source | distribution"},
            {"suite": "slow", "version": "1", "python": "3.13.0", "unprepared": "no end after 60 s: ..sF.x"},
        ],
        {"test_a": "needs a display", "test_b": "is old", "test_c": "needs a display"},
    )
    assert "2 runs of suites with 6 passing tests: 1 without an unexplained difference, 1 with one (other)" in shown
    assert shown.index("## Differences") < shown.index("## Not run") < shown.index("## Suites")
    assert "`tests/a.py::b\\|c`" in shown
    assert "no source \\| distribution" in shown
    assert "| no end after 60 s |" in shown
    assert "other (3.13.0): `x::y`" in shown
    assert "- needs a display: `test_a`, `test_c`\n- is old: `test_b`\n" in shown
    assert "taken from the project's repository" not in shown


def test_the_page_says_which_tests_are_of_a_repository() -> None:
    origin = Suite("thing", "1", ("t",), source="git", repository="https://example.org/thing", tag="v1").origin
    assert Suite("thing", "1", ("t",)).origin == ""
    shown = page.page([result(origin=""), result(suite="other", origin=origin)], {})
    assert "with the package from the registry:\n\n- other: https://example.org/thing at v1\n" in shown


def test_only_what_nothing_explains_is_a_defect() -> None:
    found = [difference(verdict) for verdict in ("differs", "explained", "flaky", "did not happen again")]
    assert [one["verdict"] for one in page.defects(result(differences=found))] == ["differs"]
    assert len(page.defects(result(warm={"verdict": "differs"}))) == 1


@pytest.mark.parametrize(("version", "verdict"), [("1", "explained"), ("2", "differs")])
def test_a_reason_that_the_manifest_has_meanwhile_explains_a_kept_difference(version: str, verdict: str) -> None:
    suite = Suite("thing", version, ("tests",), known={"tests/a.py::b|c": "it expects a frame"})
    (made,) = explained([result(differences=[difference("differs")])], [suite])
    assert made["differences"][0]["verdict"] == verdict
    assert bool(page.defects(made)) is (verdict == "differs")


def test_a_reason_holds_for_a_package_that_has_an_interpreters_version() -> None:
    suite = Suite("thing", "3.13.0", ("tests",), known={"tests/a.py::b|c": "it expects a frame"})
    own = Suite("cpython-thing", "", ("test_thing",), source="cpython", known={"tests/a.py::b|c": "it expects a frame"})
    results = [
        result(suite=name, version="3.13.0", differences=[difference("differs")]) for name in (suite.name, own.name)
    ]
    assert [one["differences"][0]["verdict"] for one in explained(results, [suite, own])] == ["explained", "explained"]


def test_the_page_says_what_was_run_with_which_interpreter() -> None:
    shown = page.page(
        [
            result(suite="cpython-a", version="3.13.0"),
            result(suite="cpython-b", version="3.13.0"),
            result(suite="asgiref", version="3.13.0"),
            result(suite="cpython-b", version="3.11.7", python="3.11.7"),
            result(suite="cpython-b", version="3.14.7t", python="3.14.7t"),
        ],
        {},
        ["3.11", "3.12", "3.13", "3.14"],
    )
    rows = (
        "| 3.11.7 | 1 of 2 | 3 | cpython-a | 0 |\n| 3.12 | 0 of 2 | 0 | all | 0 |\n| 3.13.0 | 2 of 2 | 6 | none | 1 |\n"
        "| 3.14 | 0 of 2 | 0 | all | 0 |\n| 3.14.7t | 1 of 2 | 3 | cpython-a | 0 |\n"
    )
    assert rows in shown
    assert {"3.11", "3.15"} <= set(versions())


def test_a_test_that_is_left_out_is_listed_once_for_all_interpreters() -> None:
    shown = page.page([result(python=version, without={"a.b": "hangs"}) for version in ("3.11.7", "3.13.0")], {})
    assert shown.count("`a.b`: hangs") == 1


def test_a_test_that_is_flaky_in_one_way_is_flaky_in_the_other() -> None:
    name = difference("differs")["test"]
    (made,) = explained([result(differences=[difference("differs")], flaky=[name])], [])
    assert [one["verdict"] for one in made["differences"]] == ["flaky"]


def test_kept_results_render() -> None:
    folder = ROOT / "docs" / "results" / "data" / "crater"
    kept = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    assert page.page(kept, manifest.left_out()).startswith("# Other projects' tests")
