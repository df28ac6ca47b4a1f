"""Keeps what the recipes came to, and renders which library and server works with unsnarl, at which version.

    python -m bench.crater.compatibility --record REPORT --data docs/results/data/recipes < VERSIONS
    python -m bench.crater.compatibility --render docs/results/data > docs/reference/libraries.md

REPORT is the JUnit report of the recipes' tests, VERSIONS what `pip freeze` prints in the environment
that ran it. Invariant: each row comes from a kept result; nothing of the table is typed by hand.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.crater import manifest, outcomes, page
from bench.crater.__main__ import OneLineParser, explained, kept
from bench.crater.manifest import Suite
from bench.markdown import table

Result = dict[str, Any]

SERVERS = {
    r"test_a_server\[(\w+)-.*": "",
    r"test_a_unit_of_systemd|test_a_reload_and_a_graceful_stop_of_gunicorn|test_the_steps_of_an_image": "gunicorn",
    r"test_a_management_command": "django",
    r"test_celery\[.*": "celery",
    r"test_a_dask_worker\[.*|test_a_dask_worker_on_another_host\[.*|test_a_local_cluster": "distributed",
    r"test_a_program_(that_starts_ray|of_a_ray_cluster)": "ray",
    r"test_airflow|test_a_run_of_a_dag_of_airflow": "apache-airflow",
    r"test_a_cold_start_of_a_function": "awslambdaric",
    r"test_a_jupyter_kernel": "ipykernel",
    r"test_pytest\[alone\]": "pytest",
    r"test_pytest\[-n\]": "pytest-xdist",
    r"test_tox": "tox",
    r"test_pre_commit": "pre-commit",
    r"test_make_in_a_job_of_ci": "black",
}
"""The distribution that a test of the recipes is about; an empty one is named by the test, after its page's heading."""

REFUSED = re.compile(r"test_unsnarl_run_refuses\[(\w+)\]")
"""The tests of programs that `unsnarl run` refuses."""

BY = {
    "awslambdaric": "recipe with `unsnarl pack`",
    "black": "recipe with `unsnarl warm`",
    "pre-commit": "recipe with `unsnarl warm`",
    "uwsgi": "recipe with `unsnarl.gil.install()`",
}
"""The recipes that do not start the program by `unsnarl run`."""
RUN = "recipe"

HEAD = """# Libraries and servers that were tried

Rendered by `bench/crater/compatibility.py` from the results of [other projects' tests](../results/crater.md) and of
[the recipes](../guide/recipes.md). "Works" in a library's row means that each test that was run has the outcome that it
has plainly; in a recipe's row, that the program was started by the page's command, answered with the scheduler in it
(or was served by `unsnarl warm`, or started from a pack), and ended as it does plainly. "A part of its tests" marks a
library of whose tests `bench/crater/manifest.toml` chooses some or leaves some out. What `unsnarl` refuses, and why, is
on [the page on compatibility](compatibility.md).

"""


def recorded(report: str, versions: str, python: str) -> Result:
    """Return the result of the recipes: the version of each program, and the outcomes of its tests.

    Raises:
        ValueError: the report is none, or a program of it has no version.
    """
    installed = {
        name.lower().replace("_", "-"): version
        for name, version in re.findall(r"^([\w.-]+)==(\S+)$", versions, flags=re.MULTILINE)
    }
    tried: dict[str, dict[str, Any]] = {}
    for node, outcome in outcomes.read(report).items():
        test = re.split(r"::|\.(?=test_\w+(?:\[|$))", node)[-1]
        name = _program(test)
        if name is None:
            continue
        if outcome != outcomes.SKIPPED and name not in installed:
            raise ValueError(f"no version of {name}")
        one = tried.setdefault(name, {"version": installed.get(name, ""), "passed": 0, "failed": 0, "skipped": 0})
        one[outcome] += 1
        if REFUSED.fullmatch(test) and outcome == outcomes.PASSED:
            one["refused"] = True
    return {"python": python, "programs": tried}


def _program(test: str) -> str | None:
    for pattern, name in SERVERS.items():
        if match := re.fullmatch(pattern, test):
            return name or match[1].lower()
    refused = REFUSED.fullmatch(test)
    return refused[1] if refused else None


def rendered(suites: Iterable[Result], recipes: Iterable[Result], known: Iterable[Suite] = ()) -> str:
    """Return the page; `known` are the manifest's suites, which say of what only a part of the tests was run."""
    partial = {suite.name for suite in known if suite.is_partial}
    rows = [
        _suite_row(result, "a part of its tests" if result["suite"] in partial else "its own tests")
        for result in suites
        if result["version"] != result["python"]
    ]
    rows += [
        [name, one["version"], result["python"], BY.get(name, RUN), _recipe(name, one), "–", _counted(name, one)]
        for result in recipes
        for name, one in result["programs"].items()
        if one["passed"] or one["failed"]
    ]
    head = ["library or server", "version", "Python", "tried by", "`unsnarl run`", "`--patch`", "what was run"]
    return HEAD + table(head, sorted(rows, key=lambda row: (row[0].lower(), row[3])))


def _suite_row(result: Result, tried_by: str) -> list[str]:
    head = [result["suite"], result["version"], result["python"], tried_by]
    if "ways" not in result:
        return [*head, "not known", "not known", f"its tests {_why_not(result['unprepared'])}"]
    passed = result["ways"]["plain"]["passed"]
    return [*head, *(_verdict(result, way) for way in ("unsnarl run", "unsnarl run --patch")), f"{passed:,} tests pass"]


def _why_not(unprepared: str) -> str:
    """Return in few words why a suite gave nothing to compare."""
    if unprepared.startswith("its source distribution has no"):
        return "are not in its source distribution"
    return "did not end in time, also plainly" if "no end after" in unprepared else "do not run, also plainly"


def _verdict(result: Result, way: str) -> str:
    if any(one["way"] == way for one in page.defects(result)):
        return "**differs**"
    reasons = sorted({
        one["reason"] for one in result["differences"] if one["way"] == way and one["verdict"] == "explained"
    })  # fmt: skip
    return f"works, but: {'; '.join(reasons)}" if reasons else "works"


def _recipe(name: str, one: Result) -> str:
    """Return what `unsnarl run` does with a program; a recipe that does not use it says nothing about that."""
    if one.get("refused"):
        return "refuses"
    if name in BY:
        return "–"
    return "**fails**" if one["failed"] else "works"


def _counted(name: str, one: Result) -> str:
    verdict = "" if name not in BY else ("**fails**: " if one["failed"] else "works: ")
    return f"{verdict}{one['passed']} of {one['passed'] + one['failed']} tests of the page"


def of_results(data: Path) -> str:
    """Return the page of the results in a folder, with what is known meanwhile about differences."""
    suites = manifest.read()
    if not data.is_dir():
        raise NotADirectoryError(f"there is no folder {data}")
    return rendered(explained(kept(data / "crater"), suites), kept(data / "recipes"), suites)


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line."""
    parser = OneLineParser(prog="bench.crater.compatibility", description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--record", type=Path, metavar="REPORT")
    chosen.add_argument("--render", type=Path, metavar="DATA")
    parser.add_argument("--data", type=Path, default=Path("docs/results/data/recipes"))
    options = parser.parse_args(words)
    try:
        if options.render is not None:
            sys.stdout.write(of_results(options.render))
            return 0
        python = platform.python_version()
        made = recorded(options.record.read_text(encoding="utf-8"), sys.stdin.read(), python)
        options.data.mkdir(parents=True, exist_ok=True)
        (options.data / f"{python}.json").write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
