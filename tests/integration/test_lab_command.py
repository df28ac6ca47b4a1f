"""``unsnarl lab`` lists, measures and reports; failures have an error line and a hint."""

import contextlib
import json
import os
import re
import select
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


def running(programs: "Programs", *words: str) -> subprocess.Popen[str]:
    """Start `unsnarl lab run` with its stderr on a pipe, and return the process."""
    return subprocess.Popen(
        [sys.executable, "-m", "unsnarl", "lab", "run", *words],
        cwd=programs.directory,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def await_line(process: subprocess.Popen[str], word: str) -> None:
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    while word not in next(lines):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_measured(programs: "Programs", number: signal.Signals) -> None:
    with running(programs, *SMALL, "--pairs", "1000", "--out", "out") as process:
        assert process.stderr is not None
        await_line(process, "pair 2")
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(60) == -number
    assert "interrupted: the results so far are in out\n" in rest
    assert "Traceback" not in rest
    assert max(run["pair"] for run in kept(programs)["runs"]) >= 0


def servers(pid: int) -> list[int]:
    """Return pidfds of the web servers that a process has started, while its children start and end."""
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if b"web_server.py" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(os.pidfd_open(int(child)))
    return found


def test_a_request_to_end_leaves_no_server_behind(programs: "Programs") -> None:
    """The server with a CPU-bound thread would run for ever."""
    with running(programs, "web", "--quick", "--pairs", "1000", "--only", "*one CPU-bound thread") as process:
        await_line(process, "pair 1, stock")
        watched = None
        while watched is None:
            watched = next(iter(servers(process.pid)), None)
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
    try:
        assert select.select([watched], [], [], 60)[0], "the server outlived the laboratory"
    finally:
        os.close(watched)


def test_two_at_a_time_do_not_write_to_one_directory(programs: "Programs") -> None:
    with running(programs, *SMALL, "--pairs", "1000", "--out", "out") as process:
        await_line(process, "pair 1")
        assert_refused(lab(programs, "run", *SMALL, "--out", "out"), 1, "another `unsnarl lab run`", "--out DIR")
        process.terminate()


def test_quick_runs_have_a_directory_of_their_own_and_do_not_mix(programs: "Programs") -> None:
    quick = ("efficiency", "--quick", "--only", "two threads")
    shown = lab(programs, "run", *quick)
    assert shown.status == 0, shown.complaint
    assert [path.name for path in programs.directory.glob("unsnarl-lab*")] == ["unsnarl-lab-quick"]
    full = lab(programs, "run", "efficiency", "--pairs", "1", "--out", "unsnarl-lab-quick")
    assert_refused(full, 1, "'two threads' with other arguments", "--out DIR")


def test_runs_that_fail_are_counted_and_have_a_status(programs: "Programs") -> None:
    """Every run fails: the interpreter answers the checks, and runs no program."""
    refuse = 'case "$1" in */programs/*) echo no luck >&2; exit 3;; esac'
    python = programs.write("bin/python", f'#!/bin/sh\n{refuse}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    words = ("efficiency", "--quick", "--python", str(python), "--out", "out")
    shown = lab(programs, "run", *words)
    assert shown.status == 1
    assert re.search(r"^[1-9][0-9]* runs failed: the reasons are in the results$", shown.complaint, re.MULTILINE)
    assert "\nfailed: efficiency: two threads, stock: exit status 3: no luck\n" in shown.complaint
    assert shown.stdout == b"out/" + next((programs.directory / "out").iterdir()).name.encode() + b"\n"
