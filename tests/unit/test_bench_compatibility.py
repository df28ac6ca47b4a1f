"""The table of libraries and servers: what the recipes' report comes to, and that the page is that of the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.crater import compatibility, manifest
from bench.crater.manifest import Suite

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "results" / "data"

WHERE = 'classname="tests.integration.test_recipes" file="tests/integration/test_recipes.py"'
REPORT = f"""<testsuites><testsuite>
<testcase {WHERE} name="test_a_server[gunicorn-0-gunicorn-statuses0]"/>
<testcase {WHERE} name="test_a_server[gunicorn-1-gunicorn-statuses1]"><failure message="no"/></testcase>
<testcase {WHERE} name="test_a_server[uWSGI-0-uwsgidecorators-statuses5]"/>
<testcase {WHERE} name="test_unsnarl_run_refuses[uwsgi]"/>
<testcase {WHERE} name="test_pre_commit"/>
<testcase {WHERE} name="test_tox"><skipped/></testcase>
<testcase {WHERE} name="test_every_command_of_the_page_is_one_of_these"/>
</testsuite></testsuites>"""


def test_a_report_of_the_recipes_comes_to_one_entry_a_program() -> None:
    made = compatibility.recorded(REPORT, "gunicorn==27.0.1\nuWSGI==2.0.31\npre_commit==4.7.0\n", "3.13.0")
    assert made == {
        "python": "3.13.0",
        "programs": {
            "gunicorn": {"version": "27.0.1", "passed": 1, "failed": 1, "skipped": 0},
            "uwsgi": {"version": "2.0.31", "passed": 2, "failed": 0, "skipped": 0, "refused": True},
            "pre-commit": {"version": "4.7.0", "passed": 1, "failed": 0, "skipped": 0},
            "tox": {"version": "", "passed": 0, "failed": 0, "skipped": 1},
        },
    }
    shown = compatibility.rendered([], [made])
    assert "| gunicorn | 27.0.1 | 3.13.0 | recipe | **fails** | – | 1 of 2 tests of the page |" in shown
    assert "| uwsgi | 2.0.31 | 3.13.0 | recipe with `unsnarl.gil.install()` | refuses | – | works: 2 of 2" in shown
    assert "| pre-commit | 4.7.0 | 3.13.0 | recipe with `unsnarl warm` | – | – | works: 1 of 1 tests" in shown
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
    suite["unprepared"] = "its source distribution has no tests"
    assert "its tests are not in its source distribution |" in compatibility.rendered([suite], [])


@pytest.mark.parametrize(
    ("suite", "is_partial"),
    [
        (Suite("thing", "1", ("tests",), options=("-o", "addopts=", "-p", "thing.plugin")), False),
        (Suite("thing", "1", ("--pyargs", "thing.tests"), source="wheel"), False),
        (Suite("thing", "1", ("tests/test_a.py", "tests/test_b.py")), True),
        (Suite("thing", "1", ("--pyargs", "thing.test_a", "thing.test_b"), source="wheel"), True),
        (Suite("thing", "1", ("tests", "-k", "not numpy")), True),
        (Suite("thing", "1", ("tests",), options=("-m", "not network")), True),
        (Suite("thing", "1", ("tests",), options=("--ignore=tests/test_a.py",)), True),
        (Suite("thing", "1", ("tests",), without={"tests/a.py::b": "needs a network"}), True),
    ],
)
def test_a_row_says_if_only_a_part_of_the_tests_was_run(suite: Suite, is_partial: bool) -> None:
    result: dict[str, object] = {
        "suite": "thing", "version": "1", "python": "3.13.0", "ways": {"plain": {"passed": 3}},
        "differences": [], "warm": None,
    }  # fmt: skip
    tried_by = "a part of its tests" if is_partial else "its own tests"
    row = f"| thing | 1 | 3.13.0 | {tried_by} | works | works | 3 tests pass |"
    assert row in compatibility.rendered([result], [], [suite])


def test_the_suites_that_name_some_of_their_modules_are_partial() -> None:
    partial = {suite.name for suite in manifest.read() if suite.is_partial}
    assert {"redis", "psycopg2-binary", "gevent", "cryptography", "django"} <= partial
    assert not partial & {"attrs", "click", "flask"}


def test_the_page_is_that_of_the_results() -> None:
    assert (ROOT / "docs" / "reference" / "libraries.md").read_text(encoding="utf-8") == compatibility.of_results(DATA)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--render", "/nowhere"], "there is no folder /nowhere"),
        (["--record", "/nowhere"], "/nowhere"),
        ([], "one of the arguments --record --render is required"),
    ],
)
def test_bad_input_gets_one_clear_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        compatibility.main(words)
    shown = capsys.readouterr()
    assert (end.value.code, shown.out) == (2, "")
    assert said in shown.err
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 2
