"""Runs one module of CPython's tests, with the stock GIL or with the scheduler.

``unsnarl run -m test`` installs the scheduler, so that it is in every child
process that the tests start. Invariants: both ways run the same interpreter with
the same arguments in an empty directory; no process of a run survives it; a run
without results (a crash, a hang) is an outcome like any other.
"""

import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tests.contract.cpython.suite import Module

Way = Literal["plain", "scheduled"]
Outcomes = dict[str, str]
"""Outcome by the name of the test: passed, failed or skipped; the module's own last."""

WATCHDOG_S = 600
"""Longer than any module takes on two busy cores; a module that takes longer hangs."""
DUMP_AFTER_S = 300
"""The time after which a test counts as hanging: faulthandler dumps all threads and ends it."""
TAIL = 4000
"""Characters kept of what a run printed: enough for the last dump of threads."""
COMMAND = Path(sysconfig.get_path("scripts"), "unsnarl")


class Run(NamedTuple):
    """The results of one run of one module."""

    outcomes: Outcomes
    text: str
    """The end of the run's output."""


def run(module: Module, way: Way, only: Sequence[str] = ()) -> Run:
    """Run a module to its end, or only the named tests of it."""
    with tempfile.TemporaryDirectory(prefix="cpython-tests-") as directory:
        results = Path(directory, "results.xml")
        patterns = [word for name in (only or module.match) for word in ("-m", name)]
        options = ["--junit-xml", str(results), "--timeout", str(DUMP_AFTER_S), *patterns]
        options += [word for name in module.resources for word in ("-u", name)]
        words = [*prefix(way), "-m", "test", *options, module.name]
        status, text = execute(words, directory)
        scheduled = "GIL statistics of process" in text
        outcomes = read(results)
        if not outcomes and status == 0 and not only:
            outcomes["(no results)"] = "failed"
        if way == "scheduled" and not scheduled and status == 0:
            outcomes["(under the scheduler)"] = "failed"
        outcomes["(the module)"] = ending(status)
        return Run(outcomes, text[-TAIL:])


def prefix(way: Way) -> list[str]:
    """Return the command that a run begins with."""
    return [sys.executable] if way == "plain" else [str(COMMAND), "run", "--stats"]


def ending(status: int | None) -> str:
    """Describe how the process of a module ended; regrtest has 2 for failed and 4 for nothing run."""
    if status is None:
        return f"no end after {WATCHDOG_S} s"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return "done" if status in {0, 2, 4} else f"exit status {status}"


def execute(words: Sequence[str], directory: str) -> tuple[int | None, str]:
    """Run a command in a session of its own; return its status, or None if it had to be killed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("UNSNARL", "PYTHON"))}
    with tempfile.TemporaryFile("w+", errors="backslashreplace") as output:
        process = subprocess.Popen(
            words, cwd=directory, env=clean, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        status: int | None
        try:
            status = process.wait(WATCHDOG_S)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end(process)
        output.seek(0)
        return status, output.read()


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the remaining processes of a run."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read(results: Path) -> Outcomes:
    """Read regrtest's results; none if the run ended before it wrote them."""
    if not results.exists():
        return {}
    outcomes: Outcomes = {}
    for case in ET.parse(results).iter("testcase"):
        outcome = outcome_of(case)
        name = case.get("name", "?")
        if outcomes.get(name) != "failed":
            outcomes[name] = outcome
    return outcomes


def outcome_of(case: ET.Element) -> str:
    """Return the outcome of one test, an expected failure being a pass."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("result") == "skipped":
        return "skipped"
    return "passed"
