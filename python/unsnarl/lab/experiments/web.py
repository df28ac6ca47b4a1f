"""A threaded web server under a load generator, one request at a time and ten at a time."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from unsnarl.lab.experiment import Case, Experiment, Figure, Figures
from unsnarl.lab.running.child import Child
from unsnarl.lab.running.process import PROGRAMS, Run, RunFailed, execute, printed_figures
from unsnarl.lab.variants import CONDITION, FEATURES, GREEN, LOCK

SINGLE = (*FEATURES, LOCK, CONDITION)
"""The features, and the lock and the condition of the pool alone, which the document switches one by one."""
PARALLEL = (1, 10)
HOGS = (0, 1)
SECONDS, QUICK_SECONDS = 2, 1
TIMEOUT_S = 30.0
LOAD = PROGRAMS / "http_load.py"

AB_RATE = re.compile(r"^Requests per second:\s+([\d.]+)", re.MULTILINE)
AB_PERCENTILES = {"50": "p50_ms", "99": "p99_ms"}
AB_FAILED = re.compile(r"^(?:Failed requests|Non-2xx responses):\s+([1-9]\d*)", re.MULTILINE)
TOO_MANY = "10000000"
"""Requests: so many that the time limit ends the load."""


def load(port: int, parallel: str, seconds: str, run: Run) -> Figures:
    """Load a server with ab if it is installed, else with the laboratory's own load.

    Raises:
        RunFailed: the load failed, or a request did.
    """
    limit_s = float(seconds) + TIMEOUT_S
    if shutil.which("ab") is None:
        command = [sys.executable, "-I", "-S", str(LOAD), str(port), parallel, seconds]
        return printed_figures(execute(command, run.case.confinement, limit_s).stdout)
    url = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryDirectory() as folder:
        percentiles = Path(folder, "percentiles.csv")
        command = ["ab", "-q", "-c", parallel, "-t", seconds, "-n", TOO_MANY, "-e", str(percentiles), url]
        text = execute(command, run.case.confinement, limit_s).stdout
        return ab_figures(text, percentiles.read_text(encoding="utf-8"))


def ab_figures(text: str, percentiles: str) -> Figures:
    """Return the figures that ab has printed and, to the microsecond, those in its file of ``-e``.

    Raises:
        RunFailed: a request failed.
    """
    failed = AB_FAILED.search(text)
    if failed:
        raise RunFailed(f"{failed[1]} requests failed")
    rate = AB_RATE.search(text)
    figures: Figures = {"requests_per_s": float(rate[1])} if rate else {}
    for line in percentiles.splitlines():
        share, _, milliseconds = line.partition(",")
        if share in AB_PERCENTILES:
            figures[AB_PERCENTILES[share]] = float(milliseconds)
    return figures


def measure(run: Run) -> Figures:
    """Start the server in its variant, and load it.

    Raises:
        RunFailed: the server or the load failed.
    """
    hogs, parallel, seconds = run.case.arguments
    command = run.command(str(PROGRAMS / run.experiment.program), "--hogs", hogs, *run.variant.words)
    with Child("server", command, run.case.confinement) as server:
        port = server.receive_figures(TIMEOUT_S)["port"]
        return load(port, parallel, seconds, run)


def cases(seconds: int) -> tuple[Case, ...]:
    """Return the cases p = 1 and 10, without and with a CPU-bound thread."""
    return tuple(
        Case(
            f"p = {parallel}, {'one CPU-bound thread' if hogs else 'no CPU-bound thread'}",
            (str(hogs), str(parallel), str(seconds)),
            variants=None if not hogs else tuple(v.name for v in SINGLE),
            expected_s=seconds + 0.6,
        )
        for hogs in HOGS
        for parallel in PARALLEL
    )


EXPERIMENT = Experiment(
    name="web",
    source="004: PythonPlus",
    title="A threaded web server",
    question="How many requests a second does a pool of threads answer, and which feature brings how much of it?",
    program="web_server.py",
    figures=(
        Figure("requests_per_s", "requests per second", is_better_higher=True),
        Figure("p50_ms", "median", "ms"),
        Figure("p99_ms", "99th percentile", "ms"),
    ),
    variants=(*SINGLE, GREEN),
    cases=cases(SECONDS),
    quick=tuple(case for case in cases(QUICK_SECONDS) if case.arguments[1] == str(PARALLEL[-1])),
    pairs=5,
    measure=measure,
    reading="p is the number of requests pending at a time, each over its own connection; the load is ab, or a program "
    "of the laboratory if ab is not installed. `scheduler` is the GIL alone; `lock` and `condition` are those of the "
    "pool's queue alone, `primitives` both of them and the standard library's own.",
)
