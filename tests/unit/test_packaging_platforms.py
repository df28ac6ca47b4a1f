"""The table of platforms: the last result of each stands, and nothing is invented."""

import json
import subprocess
import sys
from pathlib import Path

from distribution import where_it_runs

PROJECT = Path(__file__).parents[2]
OLD = {
    "python": "CPython 3.11.1",
    "machine": "x86_64",
    "system": "Debian bookworm",
    "c_library": "glibc 2.36",
    "installed_from": "wheel manylinux_2_17",
    "probe": "ok: it can",
    "smoke": "16 passed, 1 failed",
    "date": "2026-01-01",
}


def test_the_last_result_of_a_platform_stands() -> None:
    new = {**OLD, "python": "CPython 3.11.2", "smoke": "17 passed, 0 failed"}
    other = {**OLD, "python": "CPython 3.11.2t"}
    assert where_it_runs.merged([OLD], [new, other]) == [new, other]


def test_the_page_shows_what_was_tried_and_a_dash_for_the_rest() -> None:
    page = where_it_runs.rendered([OLD, {**OLD, "probe": "error: no|GIL", "suite": "3 passed"}])
    rows = [line for line in page.splitlines() if line.startswith("| CPython")]
    assert "can be installed | 16 passed, 1 failed | – |" in rows[0]
    assert r"no\|GIL | 16 passed, 1 failed | 3 passed |" in rows[1]


def test_a_result_line_describes_this_interpreter(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/distribution/result_line.py", "a checkout"]
    environment = {"smoke": "1 passed, 0 failed", "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True)
    line = json.loads(result.stdout.removeprefix("result: "))
    assert (line["smoke"], line["installed_from"]) == ("1 passed, 0 failed", "a checkout")
    assert ".".join(map(str, sys.version_info[:3])) in line["python"]
    assert "probe" not in line


def test_the_page_is_that_of_the_results() -> None:
    results = where_it_runs.read(PROJECT / "docs/results/platforms.json")
    page = (PROJECT / "docs/reference/platforms.md").read_text(encoding="utf-8")
    assert page == where_it_runs.rendered(results)
