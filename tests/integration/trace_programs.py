"""Traces programs with a known cause, each in a separate process, and reads the summary.

Invariant: the programs' own watchdog is that of ``Programs``; nothing here depends on the
speed of the machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from unsnarl import UnsupportedInterpreter, gil

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Outcome, Programs

Finding = dict[str, Any]


class Traced(NamedTuple):
    """The outcome of a traced program: its end, and the summary as JSON."""

    outcome: Outcome
    document: dict[str, Any]

    @property
    def processes(self) -> list[dict[str, Any]]:
        """Return the processes."""
        return list(self.document["processes"])

    def of_kind(self, kind: str) -> list[Finding]:
        """Return the findings of a kind."""
        return [finding for finding in self.document["findings"] if finding["kind"] == kind]

    def kinds(self) -> set[str]:
        """Return the kinds of all findings."""
        return {finding["kind"] for finding in self.document["findings"]}

    def thread(self, name: str) -> dict[str, Any]:
        """Return the thread of that name, in the first process."""
        return next(thread for thread in self.processes[0]["threads"] if thread["name"] == name)


def line_of(text: str, mark: str) -> int:
    """Return the number of the line with a mark."""
    return next(number for number, line in enumerate(text.splitlines(), start=1) if mark in line)


def trace(programs: Programs, text: str, *options: str, env: Mapping[str, str] | None = None) -> Traced:
    """Trace a program that must end with status 0."""
    programs.write("app.py", text)
    traced = trace_words(programs, *options, "app.py", env=env)
    assert traced.outcome.status == 0, traced.outcome.complaint
    return traced


def trace_words(programs: Programs, *words: str | Path, env: Mapping[str, str] | None = None) -> Traced:
    """Trace a program given by command line words, which may end with any status."""
    data = programs.directory / "data.json"
    outcome = programs.unsnarl("trace", "--data", str(data), *words, env=env)
    document: dict[str, Any] = json.loads(data.read_text()) if data.exists() else {"processes": [], "findings": []}
    return Traced(outcome, document)


def needs_hooks() -> None:
    """Skip the test with the reason if this interpreter cannot be recorded."""
    try:
        gil.install()
        gil.uninstall()
    except UnsupportedInterpreter as refusal:
        pytest.skip(f"cannot be traced: {refusal}")
