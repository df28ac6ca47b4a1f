"""Every scenario in every world, with and without the GIL scheduler."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@cache
def is_usable(world: str) -> bool:
    """Tell whether the library imports here: curio 1.6 does not on CPython 3.12+."""
    if world == "thread":
        return True
    command = [sys.executable, "-W", "ignore", "-c", f"import {world}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("options", [(), ("--gil",)], ids=["stock", "scheduled"])
@pytest.mark.parametrize("world", ["thread", "asyncio", "trio", "curio", "gevent", "eventlet"])
def test_scenarios(world: str, options: tuple[str, ...]) -> None:
    if not is_usable(world):
        pytest.skip(f"{world} cannot be imported by this interpreter")
    command = [sys.executable, "-m", "tests.contract.scenarios", world, "-v", *options]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stdout.splitlines()[-1].startswith("ok ")
