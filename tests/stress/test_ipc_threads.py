"""Threads of one process hammer each kind of object between processes.

With a GIL they take turns; without one their attempts overlap, which this test is for.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "integration" / "ipc_threads.py"
SCENARIOS = (
    "lock", "rlock", "baton", "semaphore", "bounded", "rwlock",
    "condition", "events", "barrier", "items", "opening", "forks",
)  # fmt: skip


@pytest.mark.timeout(150)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_threads_of_one_process_are_as_right_as_processes(scenario: str) -> None:
    completed = subprocess.run(
        [sys.executable, str(PROGRAM), scenario], capture_output=True, text=True, timeout=140, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
