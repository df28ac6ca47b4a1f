"""``unsnarl lab``: it lists, measures, reports; what cannot be done is said in two lines."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unsnarl.lab.experiments import NAMES

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

REFUSAL = re.compile(r"error: [^\n]+\nhint: [^\n]+\n")
SMALL = ("imports", "--quick", "--only", "100,000 imports")


def lab(programs: "Programs", *words: str | Path) -> "Outcome":
    return programs.unsnarl("lab", *words)


def assert_refused(shown: "Outcome", status: int, *words: str) -> None:
    assert REFUSAL.fullmatch(shown.complaint), shown.complaint
    assert (shown.status, shown.stdout) == (status, b"")
    for word in words:
        assert word in shown.complaint


def kept(programs: "Programs", folder: str = "out") -> dict[str, Any]:
    (path,) = (programs.directory / folder).glob("imports-*.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_every_experiment_is_listed(programs: "Programs") -> None:
    shown = lab(programs, "list")
    assert (shown.status, shown.stderr) == (0, b"")
    listed = [line.split()[0] for line in shown.stdout.decode().splitlines() if not line.startswith(" ")]
    assert tuple(listed) == NAMES
    assert b"start, all cores, n = 900" in lab(programs, "list", "--cases").stdout


def test_a_run_and_its_report(programs: "Programs") -> None:
    first = lab(programs, "run", *SMALL, "--out", "out")
    assert first.status == 0, first.complaint
    assert len(first.stdout.splitlines()) == 1
    second = lab(programs, "run", *SMALL, "--out", "out", "--pairs", "2")
    assert second.status == 0
    content = kept(programs)
    stock = [run for run in content["runs"] if run["variant"] == "stock"]
    assert [run["pair"] for run in stock] == [0, 1, 2]
    assert all(run["figures"]["elapsed_s"] > 0 for run in stock)
    seen = {run["variant"] for run in content["runs"]} | content["absent"].keys()
    assert seen == {"stock", "scheduler", "green", "python2.7"}
    for name, reason in content["absent"].items():
        assert f"{name}: {reason}" in first.complaint
    shown = lab(programs, "report", "out")
    assert shown.status == 0
    assert shown.stdout.decode().splitlines() == ["out/report.md", "out/report.html", "out/report.json"]


@pytest.mark.parametrize(
    ("words", "status", "names"),
    [
        (["nonsense"], 2, "list, run or report"),
        (["run", "conv"], 2, "did you mean 'convoy'?"),
        (["run", "nonsense"], 2, "'nonsense'"),
        (["run", "imports", "--only", "nothing*"], 2, "'nothing*'"),
        (["run", "--pairs", "0"], 2, "'0'"),
        (["run", "--nonsense"], 2, "--nonsense"),
        (["run", "imports", "--python", "/nowhere/python"], 2, "/nowhere/python"),
        (["run", "imports", "--python", "true"], 2, "true"),
        (["report"], 2, "DIR"),
        (["report", "nowhere"], 1, "nowhere"),
        (["report", "."], 1, "no results"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_line_that_makes_no_sense(programs: "Programs", words: list[str], status: int, names: str) -> None:
    if words == ["report"]:
        names = "folder"
    assert_refused(lab(programs, *words), status, names)


def test_an_interpreter_without_unsnarl(programs: "Programs") -> None:
    python = programs.write("bin/python", f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    assert_refused(lab(programs, "run", "imports", "--python", str(python)), 1, "unsnarl is not installed", str(python))


def test_results_that_cannot_be_kept(programs: "Programs") -> None:
    programs.write("file", "")
    assert_refused(lab(programs, "run", "imports", "--out", "file/out"), 1, "file/out")
    assert_refused(lab(programs, "run", "imports", "--out", "/proc/out"), 1, "/proc/out")


def test_a_file_that_is_no_result(programs: "Programs") -> None:
    lab(programs, "run", *SMALL, "--out", "out")
    (path,) = (programs.directory / "out").glob("imports-*.json")
    content = path.read_text()
    path.write_text(content[:100])
    assert_refused(lab(programs, "run", *SMALL, "--out", "out"), 1, path.name)
    assert_refused(lab(programs, "report", "out"), 1, path.name)
    path.write_text(content.replace('"scheduler": "', '"scheduler": "another '))
    assert_refused(lab(programs, "run", *SMALL, "--out", "out"), 1, "another scheduler")


def test_two_interpreters_of_one_version_would_share_a_file(programs: "Programs") -> None:
    python = programs.write("bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    both = ("--python", sys.executable, "--python", str(python))
    assert_refused(lab(programs, "run", *SMALL, *both), 2, "the same version")


def test_an_interrupt_keeps_what_was_measured(programs: "Programs") -> None:
    command = [sys.executable, "-m", "unsnarl", "lab", "run", *SMALL, "--pairs", "1000", "--out", "out"]
    with subprocess.Popen(
        command, cwd=programs.directory, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        while "pair 2" not in next(lines):
            pass
        os.kill(process.pid, signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == -signal.SIGINT
    assert "interrupted: what was measured is kept in out\n" in rest
    assert "Traceback" not in rest
    assert max(run["pair"] for run in kept(programs)["runs"]) >= 0
