"""The table of platforms: the last result of each stands, and nothing is invented."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from distribution import where_it_runs

from tests.shell_programs import add_program

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


def without_roots(directory: Path, script: str, body: str) -> None:
    """Copy a script and what it reads; a stub with this body takes the place of scripts/debian-root."""
    shutil.copytree(PROJECT / "scripts/distribution", directory / "scripts/distribution")
    shutil.copy(PROJECT / "scripts" / script, directory / "scripts")
    add_program(directory / "scripts/debian-root", body)


def try_in_bare_root(directory: Path, interpreter: str) -> subprocess.CompletedProcess[str]:
    """Try one in bookworm, where a stub says how it was called instead of making a root."""
    without_roots(directory, "bare-root", 'echo "note: $note"; printf "%s\\n" "$@"')
    add_program(directory / "python", f"echo {interpreter}")
    command = [str(directory / "scripts/bare-root"), str(directory), f"bookworm:{directory}/python"]
    environment = os.environ | {"note": "of the caller"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


def test_a_bare_root_sees_the_installation_of_an_interpreter_with_a_path(tmp_path: Path) -> None:
    done = try_in_bare_root(tmp_path, "/opt/own/bin/python3.12")
    _, note, *words, last = done.stdout.splitlines()
    assert (done.returncode, note, last) == (0, "note: not Debian's", "1 passed, 0 failed")
    assert words == [
        *("--bare", "bookworm", "--bind", str(tmp_path), "--bind", "/opt/own", "--"),
        *("scripts/distribution/try-wheel", "/opt/own/bin/python3.12", str(tmp_path)),
    ]


@pytest.mark.parametrize("interpreter", ["/usr/bin/python3.11", "/usr/local/bin/python3.12", "/bin/python3"])
def test_a_bare_root_sees_no_directory_that_has_a_compiler(tmp_path: Path, interpreter: str) -> None:
    done = try_in_bare_root(tmp_path, interpreter)
    assert (done.returncode, done.stdout.count("--bare")) == (2, 0)
    assert (
        done.stderr.splitlines()[0] == f"error: {interpreter} shares its directory with other programs of this machine"
    )


def test_all_builds_that_the_head_describes_are_tried(tmp_path: Path) -> None:
    without_roots(tmp_path, "builds", 'echo "$@"')
    command = [str(tmp_path / "scripts/builds"), str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    tried = re.findall(r"scripts/builds --inside (\S+)", done.stdout)
    head = (PROJECT / "scripts/builds").read_text(encoding="utf-8").partition("\nset -euo")[0]
    assert tried == re.findall(r"^#   ([a-z0-9-]+)  +\S", head, re.MULTILINE)
    assert done.stdout.splitlines()[-1] == f"{len(tried)} passed, 0 failed"


def test_a_build_that_is_not_known_is_refused(tmp_path: Path) -> None:
    without_roots(tmp_path, "builds", "exit 0")
    command = [str(tmp_path / "scripts/builds"), str(tmp_path), "plains"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "error: no such build: plains\nhint: see the head of scripts/builds\n")
