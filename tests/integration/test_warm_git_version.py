"""GitPython runs ``git version`` while it is imported, with a copy of the environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

SCRIPT = "import sys, git.cmd\nprint(git.cmd.VALUE, '_unsnarl_warm' in sys.modules)\n"
# As GitPython's function of this name does.
PACKAGE = """\
import os, subprocess
def execute(command):
    env = os.environ.copy()
    env["LC_ALL"] = "C"
    env.update({})
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    cwd = os.getcwd()
    if not os.access(cwd, os.X_OK):
        cwd = None
    process = subprocess.Popen(command, env=env, cwd=cwd, **pipes)
    return process.communicate()[0].decode().strip()
"""


@pytest.fixture
def script(rig: Rig, tmp_path: Path) -> str:
    """Return a command that imports such a package, and whose search path begins with a git of its own."""
    _program(tmp_path / "one", "echo git version 1 $GIT_SHOWN")
    rig.env["PATH"] = f"{tmp_path}/one:{rig.env['PATH']}"
    (rig.directory / "bin" / "git").mkdir()
    (rig.directory / "bin" / "git" / "__init__.py").write_text("")
    return rig.script("who", SCRIPT)


def _program(directory: Path, line: str) -> None:
    directory.mkdir()
    (directory / "git").write_text(f"#!/bin/sh\n{line}\n")
    (directory / "git").chmod(0o755)


def _module(rig: Rig, text: str) -> None:
    (rig.directory / "bin" / "git" / "cmd.py").write_text(PACKAGE + text)


def test_a_command_whose_import_asks_for_the_version_of_git_is_served(rig: Rig, script: str, tmp_path: Path) -> None:
    _module(rig, "VALUE = execute(['git', 'version'])\n")
    _program(tmp_path / "two", "echo git version 2")
    callers = {
        b"git version 1": {"OTHER": "1"},
        b"git version 1 mine": {"GIT_SHOWN": "mine"},
        b"git version 2": {"PATH": f"{tmp_path}/two:{rig.env['PATH']}"},
    }
    for shown, more in callers.items():
        rig.start(script, env=rig.env | more)
        assert rig.served(script, env=rig.env | more).stdout == shown + b" True\n", rig.log()
    for directory in (None, tmp_path):
        done = rig.served(script, env=rig.env | {"OTHER": "2"}, cwd=directory)
        assert done.stdout == b"git version 1 True\n"
    assert len(rig.servers()) == len(callers)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("VALUE = execute(['git', 'status'])\n", b"runs a program while it is imported"),
        ("KEPT = []\nVALUE = execute(['git', 'version'])\nKEPT = dict(os.environ)\n", b"reads the whole environment"),
    ],
)
def test_anything_else_is_still_run_by_runs_only(rig: Rig, script: str, text: str, why: bytes) -> None:
    _module(rig, text)
    rig.start(script)
    assert why in rig.verb("why", script).stdout
    assert rig.served(script).stdout == rig.plain(script).stdout.replace(b" False\n", b" True\n")


def test_a_copy_that_such_a_function_keeps_is_not_taken_for_one_that_it_handed_over(rig: Rig, script: str) -> None:
    kept = PACKAGE.replace("    env.update({})\n", "    KEPT.append(env)\n")
    (rig.directory / "bin" / "git" / "cmd.py").write_text(f"KEPT = []\n{kept}VALUE = execute(['git', 'version'])\n")
    rig.verb("start", "--", script)
    for _ in range(2):
        assert rig.warm(script).stdout == rig.plain(script).stdout
    assert not rig.servers()
