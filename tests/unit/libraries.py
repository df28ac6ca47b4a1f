"""Marks for tests that need another library: they are skipped where it is missing, or cannot be loaded."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest


def library(name: str) -> pytest.MarkDecorator:
    """Skip the test if the library cannot be imported, and say why."""
    why = _obstacle(name)
    return pytest.mark.skipif(bool(why), reason=f"{name} cannot be imported: {why}")


@cache
def _obstacle(name: str) -> str:
    """Return why a library cannot be imported in another process; empty if it can."""
    if find_spec(name) is None:
        return "it is not installed"
    if name not in _WITH_OTHER_LIBRARIES:
        return ""
    command = [sys.executable, "-W", "ignore", "-c", f"import {name}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


# The wheels of these need C++'s library, which a bare machine has not.
_WITH_OTHER_LIBRARIES = ("gevent", "eventlet")
