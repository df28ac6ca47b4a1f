"""Runs the programs of the scheduler's tests, each in a separate process.

Invariant: each program has two watchdogs: an inner one, which dumps the stacks of all threads
(``contention``), and that of ``Programs``, which kills it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

HERE = Path(__file__).parent

BEGIN = """\
import os, sys, threading, time
import contention, interpreter_image
from unsnarl import UnsupportedInterpreter, gil
"""

BATCH = """
gil.install()
def become_batch(most_waits=2000):
    # Until the kernel has the hint, or clearly never will.
    while os.sched_getscheduler(0) != os.SCHED_BATCH and gil.stats().classes[3].waits < most_waits:
        contention.compute()
seen = []
def in_batch_thread(work):
    def run():
        become_batch()
        work()
    with contention.hogs(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
"""
"""Has a CPU-bound thread run a function while other threads contend."""

LAZY: dict[str, str] = {}
EAGER = {"LD_BIND_NOW": "1"}
BINDINGS = {"lazy": LAZY, "eager": EAGER}
"""How the dynamic linker binds functions: at the first call, or all at the start."""


def start(programs: Programs, text: str, env: Mapping[str, str] | None = None) -> Outcome:
    """Run a program to its end, with any exit status."""
    script = programs.write("program.py", BEGIN + text)
    try:
        return programs.python(script, env={"PYTHONPATH": str(HERE), **(env or {})})
    except subprocess.TimeoutExpired as hang:
        pytest.fail(f"no end after {hang.timeout:.0f} s\n{(hang.stderr or b'').decode(errors='backslashreplace')}")


def succeed(programs: Programs, text: str, env: Mapping[str, str] | None = None) -> str:
    """Run a program that has to exit with 0; return its output."""
    outcome = start(programs, text, env)
    assert outcome.status == 0, f"exit status {outcome.status}\n{outcome.complaint}"
    return outcome.stdout.decode()
