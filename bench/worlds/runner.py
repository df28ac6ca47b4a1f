"""Carries out one run of a case: a process in a world, from its command to its figures.

The program prints ``{"operations": n, "elapsed_s": t, …}`` as its last line. The kernel adds the
processor time and the context switches of the process and of the children it waited for. Futex calls are counted in
a run of their own, by perf's tracepoint, since that run's times are not kept.

Invariant: any failure of the measured process becomes a `Failed` with its last words, and nothing of it
outlives the run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from bench.machine import ROOT

FUTEX_EVENT = "syscalls:sys_enter_futex"
PERF = ("perf", "stat", "-x,", "-e", FUTEX_EVENT)
FUTEXES = re.compile(rf"^(\d+),,{FUTEX_EVENT}", re.MULTILINE)
STEERING = ("UNSNARL", "PYTHON", "GEVENT")
"""Beginnings of the variables that would steer a measured process."""

Figures = dict[str, float]


class Failed(Exception):  # noqa: N818 -- a result, and no mistake of the caller's
    """A run without figures."""


def environment() -> dict[str, str]:
    """Return the environment of measured processes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    return kept | {"PYTHONPATH": str(ROOT)}


def run(command: Sequence[str], limit_s: float) -> Figures:
    """Run a command; return its rate and what it cost for each operation.

    Raises:
        Failed: it has no figures.
    """
    printed, _, usage = _execute(command, limit_s)
    operations, elapsed_s = printed.pop("operations"), printed.pop("elapsed_s")
    return {
        "rate_per_s": operations / elapsed_s,
        "cpu_us": 1e6 * (usage.ru_utime + usage.ru_stime) / operations,
        "switches": (usage.ru_nvcsw + usage.ru_nivcsw) / operations,
        **printed,
    }


def futexes(command: Sequence[str], limit_s: float) -> float | None:
    """Return a command's futex calls for each operation; None where perf may not count them.

    Raises:
        Failed: the command has no figures.
    """
    if not _may_count():
        return None
    printed, complaints, _ = _execute([*PERF, *command], limit_s)
    found = FUTEXES.search(complaints)
    return int(found[1]) / printed["operations"] if found else None


def _may_count() -> bool:
    try:
        return subprocess.run([*PERF, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _execute(command: Sequence[str], limit_s: float) -> tuple[Figures, str, Any]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err, process_group=0
        )
        is_late = threading.Event()
        timer = threading.Timer(limit_s, _end, (process.pid, is_late))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
            _kill(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        complaints = err.read().decode(errors="replace")
        if is_late.is_set():
            raise Failed(f"no result within {limit_s:g} s")
        if process.returncode != 0:
            last = [line for line in complaints.splitlines() if line.strip()][-1:] or ["nothing on stderr"]
            raise Failed(f"exit status {process.returncode}: {last[0].strip()}")
        return _figures(out.read().decode(errors="replace")), complaints, usage


def _end(group: int, is_late: threading.Event) -> None:
    is_late.set()
    _kill(group)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it has ended


def _figures(text: str) -> Figures:
    try:
        printed: Figures = json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failed("it printed no figures") from None
    return printed
