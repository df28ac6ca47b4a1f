"""The halves of the tests that CI runs by turn: each test is in exactly one of them.

Invariant: what is counted is what pytest collects, in a process of its own.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEVERAL = "tests/unit/test_cli_reference.py"
"""A file with more tests than chance puts into one half."""


def collected(*words: str) -> list[str]:
    """Return the names of the tests that pytest collects of one file."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words, SEVERAL]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True).stdout
    return [line for line in said.splitlines() if "::" in line]


def test_each_test_is_in_one_half() -> None:
    first, second = collected("--half", "0"), collected("--half", "1")
    assert first
    assert second
    assert sorted(first + second) == sorted(collected())
