"""Commands that are started in a directory that has been removed since."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from unsnarl.green import is_available

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

IN_A_REMOVED_ONE = 'mkdir removed && cd removed && rmdir ../removed && exec "$@"'
GONE = "error: the current directory has been removed\nhint: change to another directory\n"


def there(programs: Programs, words: str) -> Outcome:
    """Run ``unsnarl WORDS`` in a removed directory."""
    command = [sys.executable, "-m", "unsnarl", *shlex.split(words)]
    return programs.execute(["sh", "-c", IN_A_REMOVED_ONE, "sh", *command])


@pytest.mark.parametrize("words", ["trace -c pass", "doctor -c pass", "pack -m json.tool -o x.pack"])
def test_what_needs_the_directory_says_that_it_has_been_removed(programs: Programs, words: str) -> None:
    shown = there(programs, words)
    assert (shown.status, shown.complaint) == (1, GONE)


def test_a_program_runs_there_as_python_would(programs: Programs) -> None:
    shown = there(programs, "run -c 'print(1)'")
    assert (shown.status, shown.stdout) == (0, b"1\n"), shown.complaint


@pytest.mark.skipif(not is_available(), reason="gevent is not installed")
def test_a_program_runs_there_in_user_space(programs: Programs) -> None:
    shown = there(programs, "run --green -c 'print(1)'")
    assert (shown.status, shown.stdout) == (0, b"1\n"), shown.complaint


def test_a_trace_goes_where_it_is_told_to_go(programs: Programs) -> None:
    shown = there(programs, f"trace --output {shlex.quote(str(programs.directory / 'x.html'))} -c pass")
    assert (shown.status, (programs.directory / "x.html").exists()) == (0, True), shown.complaint


def test_a_command_that_is_packed_there_runs(programs: Programs) -> None:
    pack = programs.directory / "x.pack"
    shown = there(programs, f"pack -m json.tool -o {shlex.quote(str(pack))} --with --help")
    assert (shown.status, pack.exists()) == (0, True), shown.complaint
