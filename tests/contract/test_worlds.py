"""Every scenario in every world, with and without the GIL scheduler."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.contract.worlds import LIBRARIES, WORLDS

ROOT = Path(__file__).resolve().parents[2]


@cache
def obstacle(library: str) -> str:
    """Return why the library cannot be imported here; empty if it can. curio 1.6 cannot on CPython 3.12+."""
    command = [sys.executable, "-W", "ignore", "-c", f"import {library}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


SCHEDULED = pytest.param(("--gil",), id="scheduled", marks=pytest.mark.needs_gil)


@pytest.mark.parametrize("options", [pytest.param((), id="stock"), SCHEDULED])
@pytest.mark.parametrize("world", WORLDS)
def test_scenarios(world: str, options: tuple[str, ...]) -> None:
    for library in LIBRARIES.get(world, (world,)):
        if obstacle(library):
            pytest.skip(f"{library} cannot be imported by this interpreter: {obstacle(library)}")
    command = [sys.executable, "-m", "tests.contract.scenarios", world, "-v", *options]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stdout.splitlines()[-1].startswith("ok ")
