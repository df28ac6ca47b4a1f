"""The table of libraries and servers: what the recipes' report comes to, and that the page is that of the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.crater import compatibility

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "results" / "data"

WHERE = 'classname="tests.integration.test_recipes" file="tests/integration/test_recipes.py"'
REPORT = f"""<testsuites><testsuite>
<testcase {WHERE} name="test_a_server[gunicorn-0-gunicorn-statuses0]"/>
<testcase {WHERE} name="test_a_server[gunicorn-1-gunicorn-statuses1]"><failure message="no"/></testcase>
<testcase {WHERE} name="test_a_server[uWSGI-0-uwsgidecorators-statuses5]"/>
<testcase {WHERE} name="test_tox"><skipped/></testcase>
<testcase {WHERE} name="test_every_command_of_the_page_is_one_of_these"/>
</testsuite></testsuites>"""


def test_a_report_of_the_recipes_comes_to_one_entry_a_program() -> None:
    made = compatibility.recorded(REPORT, "gunicorn==27.0.1\nuWSGI==2.0.31\n", "3.13.0")
    assert made == {
        "python": "3.13.0",
        "programs": {
            "gunicorn": {"version": "27.0.1", "passed": 1, "failed": 1, "skipped": 0},
            "uwsgi": {"version": "2.0.31", "passed": 1, "failed": 0, "skipped": 0},
            "tox": {"version": "", "passed": 0, "failed": 0, "skipped": 1},
        },
    }
    shown = compatibility.rendered([], [made])
    assert "| gunicorn | 27.0.1 | 3.13.0 | recipe | **fails** | – | 1 of 2 commands of the page |" in shown
    assert "| tox |" not in shown


def test_a_program_that_was_tried_has_a_version() -> None:
    with pytest.raises(ValueError, match="no version of gunicorn"):
        compatibility.recorded(REPORT, "uwsgi==2.0.31\n", "3.13.0")


@pytest.mark.parametrize("differs", [True, False])
def test_a_suite_that_differs_is_said_to(differs: bool) -> None:
    one = {"test": "a", "way": "unsnarl run", "plain": "passed", "outcome": "failed"}
    verdict = {"verdict": "differs"} if differs else {"verdict": "explained", "reason": "it expects a frame"}
    suite = {
        "suite": "thing", "version": "1", "python": "3.13.0", "ways": {"plain": {"passed": 3}},
        "differences": [one | verdict], "warm": None,
    }  # fmt: skip
    cell = "**differs**" if differs else "works, but: it expects a frame"
    row = f"| thing | 1 | 3.13.0 | its own tests | {cell} | works | 3 tests pass |"
    assert row in compatibility.rendered([suite], [])


def test_a_suite_that_does_not_run_plainly_tells_nothing() -> None:
    suite = {"suite": "thing", "version": "1", "python": "3.13.0", "unprepared": "no source"}
    assert "| not known | not known | its tests do not run, also plainly |" in compatibility.rendered([suite], [])
    suite["unprepared"] = "no test passes plainly (no end after 240 s): ..F."
    assert "its tests did not end in time, also plainly |" in compatibility.rendered([suite], [])


def test_the_page_is_that_of_the_results() -> None:
    assert (ROOT / "docs" / "reference" / "libraries.md").read_text(encoding="utf-8") == compatibility.of_results(DATA)
