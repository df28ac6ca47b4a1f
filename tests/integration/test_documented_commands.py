"""The commands that the pages give a reader do what the page says: they end with status 0.

On the site's first pages each line of a block marked ``bash`` is a command; in the guide and the README each indented
line that begins with ``unsnarl``. What takes long or changes the environment is named here, and has tests of its own,
as have commands of other programs.
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
INDENTED = re.compile(r"^ {4}(unsnarl .+)$", re.MULTILINE)
TESTED_ELSEWHERE = (
    *("pip install", "unsnarl demo", "unsnarl doctor", "unsnarl lab r", "unsnarl cluster", "unsnarl warm"),
    *("unsnarl enable", "unsnarl status", "unsnarl disable"),
)
WITH_ANOTHER_PROGRAM = re.compile(r"\b(hg|gunicorn|module|AAAA|4711)\b")
"""Programs and numbers that stand for the reader's."""
PROGRAM = "print('the program ran')"
FILES = ("app.py", "package/__main__.py", "mypkg/__init__.py", "mypkg/tool.py")


def commands() -> list[str]:
    guide = [DOCS.parent / "README.md", *DOCS.glob("guide/**/*.md")]
    lines = [line for page in PAGES for block in blocks(page) for line in block.splitlines()]
    lines += [line for page in guide for line in INDENTED.findall(page.read_text(encoding="utf-8"))]
    found = {line.split("#")[0].strip() for line in lines} - {""}
    return sorted(
        line for line in found if not (line.startswith(TESTED_ELSEWHERE) or WITH_ANOTHER_PROGRAM.search(line))
    )


def blocks(page: str) -> list[str]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", commands())
def test_a_documented_command_works(command: str, tmp_path: Path) -> None:
    needs_hooks()
    if "--green" in command:
        pytest.importorskip("gevent")
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if name not in {"UNSNARL", "UNSNARL_RUN"}}
    env["PATH"] = f"{Path(UNSNARL).parent}:{env['PATH']}"
    env["UNSNARL_WARM_DIR"] = str(tmp_path / "warm")
    ran = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "error:" not in ran.stderr
    if "app.py" in command and " pack " not in command:
        assert "the program ran" in ran.stdout


def test_there_are_commands_to_try() -> None:
    assert {"unsnarl gil probe", "unsnarl run --no-children app.py", "unsnarl pack app.py -o app.pack"} <= set(
        commands()
    )
