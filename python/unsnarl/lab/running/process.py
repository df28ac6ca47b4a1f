"""One run: a process of its own, from its command to its figures.

The process has a group of its own, so that nothing of it outlives the run, and a
directory of its own. Times are those of the program itself where it prints them,
and those that the kernel accounts to it (``wait4``). Runs may go on in several
threads at once; ``end_all`` ends them from another one.

Invariant: whatever goes wrong in the measured process is a ``RunFailed`` with its
last words, never an exception of another kind.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from unsnarl.errors import UnsnarlError
from unsnarl.lab import presence
from unsnarl.lab.experiment import Case, Confinement, Experiment, Figures, Variant

PROGRAMS = Path(__file__).parents[1] / "programs"
CONFINE = Path(__file__).with_name("confine.py")

STRACE_LINE = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$")
"""A line of ``strace -c``: share, seconds, microseconds a call, calls, errors if any, name."""


class RunFailed(UnsnarlError):  # noqa: N818 -- a result, and no mistake of the caller's
    """A run that has no figures."""


class TimedOut(RunFailed):
    """A run that did not end within its time limit: that is known of it, or was without running it."""

    limit_s: float
    is_spared: bool
    """Whether it was not run."""

    def __init__(self, limit_s: float, *, is_spared: bool = False) -> None:
        """Say so."""
        known = "not run: that or a smaller size has given "
        super().__init__(f"{known if is_spared else ''}no result within {limit_s:g} s")
        self.limit_s, self.is_spared = limit_s, is_spared


class LaunchContext(NamedTuple):
    """Where a command runs: in a directory, in our environment and these variables."""

    directory: str
    variables: Mapping[str, str]


class Run(NamedTuple):
    """A case of an experiment in one variant, with the interpreter that is measured."""

    experiment: Experiment
    case: Case
    variant: Variant
    python: str

    def interpreter(self) -> str:
        """Return the interpreter that the program runs in."""
        if self.variant.interpreter == "python":
            return self.python
        return presence.other_interpreter(self.variant.interpreter) or self.variant.interpreter

    def command(self, *words: str) -> list[str]:
        """Return the command that runs a program, given by the words after the interpreter, in this variant."""
        if self.variant.launcher in ("run", "green"):
            green = ("--green",) if self.variant.launcher == "green" else ()
            return [self.python, "-P", "-m", "unsnarl", "run", *green, *self.variant.options, *words]
        return [self.interpreter(), *words]

    def program(self) -> list[str]:
        """Return the command of the experiment's program for this case."""
        path = str(PROGRAMS / self.experiment.program)
        return self.command(path, *self.case.arguments, *self.variant.words)


class Done(NamedTuple):
    """A process that has ended well."""

    stdout: str
    elapsed_s: float
    user_s: float
    system_s: float


def measure(run: Run) -> Figures:
    """Carry out a run and return its figures.

    Raises:
        RunFailed: there are none.
    """
    if run.experiment.measure is not None:
        return run.experiment.measure(run)
    if run.case.is_traced:
        return count_calls(run.program(), run.case)
    done = execute(run.program(), run.case.confinement, run.case.limit_s)
    figures: Figures = printed_figures(done.stdout)
    return {"user_s": done.user_s, "system_s": done.system_s, **figures}


def printed_figures(stdout: str) -> Figures:
    """Return the figures that a program printed in its last line.

    Raises:
        RunFailed: it printed none.
    """
    try:
        last: Any = json.loads(stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = None
    if not isinstance(last, dict):
        raise RunFailed("it printed no figures")
    return cast("Figures", last)


def count_calls(command: Sequence[str], case: Case, context: LaunchContext | None = None) -> Figures:
    """Run a command under strace; return its system calls by name, as ``calls.NAME`` and ``calls.all``.

    ``context``: as for :func:`execute`.

    Raises:
        RunFailed: the command or strace failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "calls")
        words = ["strace", "-f", "-c", "-o", str(report), *command]
        execute(words, case.confinement, case.limit_s, context)
        lines = report.read_text(errors="replace").splitlines()
    found = (STRACE_LINE.match(line) for line in lines)
    calls = {match[2]: int(match[1]) for match in found if match and match[2] != "total"}
    calls.setdefault("futex", 0)
    return {"calls.all": sum(calls.values())} | {f"calls.{name}": count for name, count in calls.items()}


def confined(command: Sequence[str], confinement: Confinement, *, is_bound: bool = False) -> list[str]:
    """Return the command with what puts it on its cores and under its policy, and ends it with this process.

    Both take an interpreter before the command. What is neither confined nor ``is_bound`` begins without, and would
    outlive this process if that were killed by SIGKILL: nothing else is right for what starts and ends at once.
    """
    if confinement == Confinement() and not is_bound:
        return list(command)
    cores = "all" if confinement.cores is None else str(confinement.cores)
    policy = "rr" if confinement.is_round_robin else "other"
    return [sys.executable, "-I", "-S", str(CONFINE), cores, policy, str(os.getpid()), *command]


def environment() -> dict[str, str]:
    """Return the environment for measured processes: ours, without what steers unsnarl or python."""
    steering = ("UNSNARL", "PYTHON", "GEVENT")
    return {name: value for name, value in os.environ.items() if not name.startswith(steering)}


_running: set[int] = set()
"""The groups of what runs now."""


def end_all() -> None:
    """Kill everything that runs: whoever waits for it has a failed run."""
    for group in tuple(_running):
        _kill(group)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@contextlib.contextmanager
def started(
    command: Sequence[str],
    confinement: Confinement,
    stdout: IO[bytes],
    stderr: IO[bytes],
    context: LaunchContext | None = None,
) -> Generator[subprocess.Popen[bytes]]:
    """Start a command in a group of its own, and leave nothing of it behind.

    ``context``: where it runs; without it, in a directory of its own.

    Raises:
        RunFailed: it cannot be started.
    """
    with contextlib.nullcontext(context.directory) if context else tempfile.TemporaryDirectory() as folder:
        try:
            process = subprocess.Popen(
                confined(command, confinement),
                cwd=folder,
                env=environment() | dict(context.variables if context else {}),
                process_group=0,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
        except OSError as error:
            raise RunFailed(f"{command[0]} cannot be run: {error.strerror}") from None
        try:
            _running.add(process.pid)
            yield process
        finally:
            _kill(process.pid)
            _running.discard(process.pid)
            with process:
                pass


def execute(
    command: Sequence[str], confinement: Confinement, limit_s: float, context: LaunchContext | None = None
) -> Done:
    """Run a command to its end, in that place or in a directory of its own.

    Raises:
        TimedOut: it did not end within ``limit_s`` seconds.
        RunFailed: it did not end with status 0.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        began_s = time.perf_counter()
        with started(command, confinement, stdout, stderr, context) as process:
            status, usage = _wait(process, limit_s)
            elapsed_s = time.perf_counter() - began_s
        stdout.seek(0)
        stderr.seek(0)
        if status == LATE:
            raise TimedOut(limit_s)
        if status != 0:
            raise RunFailed(_failure(status, stderr.read().decode(errors="replace")))
        text = stdout.read().decode(errors="replace")
    return Done(text, elapsed_s, usage.ru_utime, usage.ru_stime)


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> tuple[int, Any]:
    """Wait for a process, which is killed when its time is up; return its status and what it used."""
    is_late = threading.Event()

    def kill() -> None:
        is_late.set()
        _kill(process.pid)

    timer = threading.Timer(limit_s, kill)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return (LATE if is_late.is_set() else process.returncode), usage


LATE = -1000
"""Stands for the status of a process that was killed because its time was up."""


def _failure(status: int, complaints: str) -> str:
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return f"{how}: {lines[-1]}" if lines else how
