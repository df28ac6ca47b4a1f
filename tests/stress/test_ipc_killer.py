"""Random participants are killed at random instants: nothing hangs, and nothing acknowledged is lost.

Time-boxed by `UNSNARL_KILLER_S` (seconds; a minute by default).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "integration" / "ipc_killer.py"


@pytest.mark.timeout(300)
def test_kills_for_a_minute() -> None:
    seconds = os.environ.get("UNSNARL_KILLER_S", "60")
    completed = subprocess.run(
        [sys.executable, str(PROGRAM), seconds], capture_output=True, text=True, timeout=280, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    print(completed.stdout)
