"""The commands that the site's first pages give a reader do what the page says: they end with status 0.

A line of a block marked ``bash`` is a command. What takes long is named here, and has tests of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import UNSNARL
from tests.integration.trace_programs import needs_hooks
from tests.integration.waiting import WATCHDOG_S

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index.md", "guide/faq.md", "guide/troubleshooting.md")
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
TESTED_ELSEWHERE = ("pip install", "unsnarl demo", "unsnarl doctor")
PROGRAM = "print('the program ran')"


def commands() -> list[str]:
    lines = [line.split("#")[0].strip() for page in PAGES for block in blocks(page) for line in block.splitlines()]
    return sorted({line for line in lines if line and not line.startswith(TESTED_ELSEWHERE)})


def blocks(page: str) -> list[str]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", commands())
def test_a_documented_command_works(command: str, tmp_path: Path) -> None:
    needs_hooks()
    (tmp_path / "app.py").write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if name not in {"UNSNARL", "UNSNARL_RUN"}}
    env["PATH"] = f"{Path(UNSNARL).parent}:{env['PATH']}"
    env["UNSNARL_WARM_DIR"] = str(tmp_path / "warm")
    ran = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "error:" not in ran.stderr
    if "app.py" in command:
        assert "the program ran" in ran.stdout


def test_there_are_commands_to_try() -> None:
    assert "unsnarl gil probe" in commands()
