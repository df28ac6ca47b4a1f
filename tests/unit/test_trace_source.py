"""The report shows the traced program's source, and never that of its own process."""

from __future__ import annotations

import linecache
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.test_trace_account import in_libraries
from unsnarl.trace import source
from unsnarl.trace.findings import account


@pytest.mark.parametrize("name", ["<string>", "<stdin>", "<frozen importlib._bootstrap>"])
def test_a_name_of_no_file_has_no_source(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(linecache.cache, name, (9, None, ["of the report's own process\n"], name))
    assert (source.line(name, 1), source.lines(name)) == ("", [])


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["python", "-c", "a = 1\nb = 2"], "b = 2"),
        (["python", "-uIc", "a\nb", "-c", "x\ny"], "b"),
        (["python", "-X", "dev", "-Werror", "-c", "a\nb"], "b"),
        (["python", "--check-hash-based-pycs", "never", "-ca\nb"], "b"),
        (["python", "-c", "a"], ""),
        (["python", "-m", "tool", "-c", "a\nb"], ""),
        (["python", "tool.py", "-c", "a\nb"], ""),
        (["python", "-", "-c", "a\nb"], ""),
        (["python", "-c"], ""),
        (["python"], ""),
        ([], ""),
    ],
)
def test_the_program_of_a_command_line(command: list[str], line: str) -> None:
    assert source.line_of_command(command, 2, "<module>") == line


@pytest.mark.parametrize(
    ("function", "line"),
    [("work", "x = 1"), ("work.<locals>.<genexpr>", "x = 1"), ("<module>", "x = 1"), ("Row.__init__", "")],
)
def test_code_made_of_text_has_no_line_of_the_command(function: str, line: str) -> None:
    assert source.line_of_command(["python", "-c", "def work():\n    x = 1"], 2, function).strip() == line


def test_the_account_shows_the_line_of_the_program_that_the_command_line_gives() -> None:
    tables: dict[str, Any] = {"locations": {"1": ["<string>", "<module>", 2]}, "nodes": {"1": [0, 1], "2": [0, 1]}}
    text = "cpython\x1f3.13\x1f/lib\x1fpython\x1f-c\x1fimport app\napp.run()"
    run = replace(in_libraries(**tables), text=text)
    [found] = account.findings(run)
    assert "<string>:2: app.run()" in found.details
