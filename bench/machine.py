"""Description of the machine and the sources of a measurement, kept with every result."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from unsnarl.lab import machine

ROOT = Path(__file__).resolve().parents[1]


def first_line(*command: str) -> str:
    """Return the first line a command prints; empty when it cannot be run or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    lines = done.stdout.splitlines()
    return lines[0] if done.returncode == 0 and lines else ""


def sources() -> str:
    """Return the commit of these sources, marked if measured files have changed since.

    A root without git has it from the script that runs there, in ``UNSNARL_SOURCES``.
    """
    if known := os.environ.get("UNSNARL_SOURCES"):
        return known
    commit = first_line("git", "rev-parse", "--short", "HEAD") or "of an unknown commit"
    is_changed = first_line("git", "status", "--porcelain", "--", "crates", "python", "bench")
    return f"{commit} with changes" if is_changed else commit


def describe(python: str) -> dict[str, Any]:
    """Return the description of `unsnarl.lab.machine`, with the commit of these sources."""
    return machine.describe(python) | {"commit": sources()}
