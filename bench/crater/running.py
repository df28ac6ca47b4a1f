"""Runs a prepared suite in one way, in a session of its own, and returns its outcomes.

Invariants: all ways run the same words in the same directory and environment; no process of a run survives it; a crash
or a hang is an outcome like any other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.crater import outcomes
from bench.crater.manifest import Suite

WAYS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "plain again": (),
    "unsnarl run": ("run",),
    "unsnarl run --patch": ("run", "--patch"),
}
"""The options of each way; the first two are compared with each other, and the others with them."""

REPORTED = {0, 1, 2, 5}
"""Statuses with which pytest and regrtest end after they have reported."""
REPORT = "reported"
"""The end of a run with such a status and a report that can be read."""
TAIL_BYTES = 6000
STEERING = ("UNSNARL", "PYTHON", "PYTEST", "VIRTUAL_ENV")


@dataclass(slots=True)
class Run:
    """One run: its outcomes, its exit status (None if it was killed), its time, and the end of its output."""

    outcomes: outcomes.Outcomes = field(default_factory=dict[str, str])
    status: int | None = None
    wall_s: float = 0.0
    tail: str = ""


def run(suite: Suite, way: str, python: Path, directory: Path, only: Sequence[str] = ()) -> Run:
    """Run the tests of a suite, or only some of them, in a way of WAYS."""
    with tempfile.TemporaryDirectory(prefix="crater-") as folder:
        report = Path(folder, "report.xml")
        options = WAYS[way]
        start = [str(python)] if not options else [str(python.with_name("unsnarl")), *options]
        variables = environment(suite, python, folder)
        made = _execute([*start, *words(suite, report, only)], variables, directory, suite.limit_s)
        ended = ending(made.status, suite.limit_s)
        try:
            made.outcomes = outcomes.read(report.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            ended = _without_report(made, ended, "no report")
        except ValueError as error:
            ended = _without_report(made, ended, f"a report that cannot be read: {error}")
    made.outcomes[outcomes.THE_RUN] = ended
    return made


def _without_report(made: Run, ended: str, what: str) -> str:
    """Return how a run ended that has no outcomes; its status alone would count as a report."""
    return f"status {made.status}, {what}" if ended == REPORT else ended


def words(suite: Suite, report: Path, only: Sequence[str] = ()) -> list[str]:
    """Return the command line after the interpreter."""
    if suite.source == "cpython":
        patterns = [word for name in only for word in ("-m", name)]
        patterns += [word for name in suite.without for word in ("-i", name)]
        return ["-m", "test", "--junit-xml", str(report), "-u", "network", *patterns, *suite.tests]
    left_out = [f"--deselect={name}" for name in suite.without]
    # The root is fixed, so that one test of an installed package has the same name when it runs alone.
    root = ["--rootdir=."] if suite.source == "wheel" else []
    # The name of a test is printed before it runs, so that the output of a run that comes to no end ends with it.
    options = ["-v", "-p", "no:cacheprovider", f"--junitxml={report}", "-o", "junit_family=xunit1", *root]
    selected = list(only) or list(suite.tests)
    return ["-m", "pytest", *options, *left_out, *suite.options, *selected]


def environment(suite: Suite, python: Path, folder: str) -> dict[str, str]:
    """Return the environment of all ways: this one without what steers python, pytest and unsnarl, with the suite's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    return kept | {"PATH": f"{python.parent}:{kept.get('PATH', os.defpath)}", "TMPDIR": folder} | suite.variables


def ending(status: int | None, limit_s: float) -> str:
    """Return how a run ended, in words."""
    if status is None:
        return f"no end after {limit_s:g} s"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return REPORT if status in REPORTED else f"status {status}"


def _execute(command: list[str], variables: dict[str, str], directory: Path, limit_s: float) -> Run:
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=directory, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        status: int | None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - TAIL_BYTES))
        tail = output.read().decode(errors="backslashreplace")
    return Run(status=status, wall_s=time.monotonic() - started, tail=tail)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what a run has left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
