"""Which interpreter a command is run by, and how it was named: a program, a script that looks for one, a name on PATH.

Invariant: warm or plain, the command is run by the interpreter that it would find by itself.
"""

import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import NOT_WARM, UNSNARL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Rig

WHO = "import os, sys\nprint(os.environ.get('CHOSEN'), '_unsnarl_warm' in sys.modules)\n"


def wrapper(path: "Path", chosen: str = "$(cat chosen)") -> str:
    """Write an interpreter that is a script, and looks into the caller's directory."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\nCHOSEN={chosen} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("how", ["by name", "by its first line"])
def test_an_interpreter_that_is_a_script_finds_its_own_anew(rig: "Rig", how: str) -> None:
    python = wrapper(rig.directory / "tools" / "python3")
    script = rig.directory / "bin" / "who"
    script.write_text(f"#!{python}\n{WHO}")
    script.chmod(0o755)
    words = [python, str(script)] if how == "by name" else [str(script)]
    (rig.directory / "work" / "chosen").write_text("one")
    started = rig.plain(UNSNARL, "warm", "start", "--", *words)
    assert started.returncode == 1
    assert b"name the one it finds" in started.stderr
    for chosen in ("one", "other"):
        (rig.directory / "work" / "chosen").write_text(chosen)
        assert rig.warm(*words).stdout == f"{chosen} False\n".encode()
    assert rig.served(*words).returncode == NOT_WARM
    assert rig.verb("status").stdout == b""
