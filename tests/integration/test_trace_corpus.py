"""Programs of ``tests/causes``: the first line names where the time went, and each cause is found, or none.

The head of a program states what is expected:

- ``# first: TEXT``: the account of the process or of its slowest thread has this text;
- ``# finding: KIND, thread NAME, line MARK, place TEXT, severity NAME, remedy COMMAND|none, FIGURE VALUE``: such a
  finding exists;
- ``# not: KIND, remedy COMMAND``: neither finding nor remedy of this kind exists;
- ``# quiet``: no finding is severe;
- ``# needs MODULE``: the program is skipped where the module is not installed;
- ``# before VERSION: REASON``: from this CPython on, what is expected is not found yet.

A program leaves no file in the directory that it is started in, which may be anybody's.

A stall of a program lasts some times ``event_loop.STALL_NS`` on the fastest interpreter, lest a faster one hide it.
A busy machine can create a cause, and hide one, so a program has three runs, of which one must be as expected.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.trace_programs import Finding, Traced, line_of, needs_hooks, trace

if TYPE_CHECKING:
    from tests.conftest import Programs

PROGRAMS = sorted((Path(__file__).parents[1] / "causes").glob("*.py"))
RUNS = 3
OF_THE_TRACE = {"app.py", "data.json", "trace.html", "trace.json"}


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_told_its_cause(programs: Programs, path: Path) -> None:
    text = path.read_text()
    limit = re.search(r"^# before 3\.(\d+): (.*)", text, re.MULTILINE)
    if limit and sys.version_info >= (3, int(limit[1])):
        pytest.skip(f"CPython 3.{limit[1]} and later: {limit[2]}")
    for needed in re.findall(r"^# needs (.*)", text, re.MULTILINE):
        pytest.importorskip(needed)
    for _ in range(RUNS):
        traced = trace(programs, text)
        wrong = misses(text, traced)
        if not wrong:
            break
    assert not wrong, (wrong, traced.outcome.complaint)
    assert {left.name for left in programs.directory.iterdir()} <= OF_THE_TRACE


def misses(text: str, traced: Traced) -> list[str]:
    """Return the expectations of a program's head that its trace does not meet."""
    findings: list[Finding] = traced.document["findings"]
    wrong: list[str] = []
    for line in re.findall(r"^# ((?:first:|finding:|not:|quiet).*)", text, re.MULTILINE):
        verb, _, rest = line.partition(":")
        first = findings[0]
        if verb == "first":
            is_met = first["kind"] == "time" and rest.strip() in " ".join([first["title"], *first["details"]])
        elif verb == "finding":
            kind, *conditions = rest.strip().split(", ")
            is_met = any(meets(text, found, conditions) for found in traced.of_kind(kind))
        elif verb == "not":
            is_met = not any(is_named(finding, word) for finding in findings for word in rest.strip().split(", "))
        else:
            is_met = not any(finding["severity"] == "severe" for finding in findings)
        if not is_met:
            wrong.append(line)
    percents = [int(percent) for percent in re.findall(r"(\d+) %", findings[0]["title"])]
    return wrong if sum(percents) == 100 else [*wrong, "shares of 100 %"]


def is_named(finding: Finding, word: str) -> bool:
    """Tell whether a finding is of a kind, or has a remedy."""
    if word.startswith("remedy "):
        return any(remedy["command"] == word.removeprefix("remedy ") for remedy in remedies(finding))
    return bool(finding["kind"] == word)


def remedies(finding: Finding) -> list[dict[str, Any]]:
    return [remedy for remedy in (finding["remedy"], finding["alternative"]) if remedy]


def meets(text: str, finding: Finding, conditions: list[str]) -> bool:
    """Tell whether a finding has the thread, the line, the remedy and the figures."""
    for condition in conditions:
        name, _, value = condition.partition(" ")
        if name in ("thread", "severity"):
            is_met = finding[name] == value
        elif name == "line":
            is_met = f"app.py:{line_of(text, f'  # {value}')} in " in str(finding["place"])
        elif name == "place":
            is_met = finding["place"] == value
        elif name == "remedy":
            commands = [remedy["command"] for remedy in remedies(finding) if remedy["command"]]
            is_met = commands == ([] if value == "none" else [value])
        else:
            is_met = finding["figures"].get(name) == int(value)
        if not is_met:
            return False
    return True
