"""Carries out one run: starts a process, waits for it, and returns its figures.

The process has its own process group, so that no part of it outlives the run, and its own working
directory. Times are those that the program prints, and those that the kernel accounts to it (``wait4``).
Several threads may carry out runs at the same time; ``end_all`` ends the runs from another thread.

Invariant: every failure of the measured process is a ``RunFailed`` with the process's last line.
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

from unsnarl.child_end import wait_for_the_end
from unsnarl.errors import UnsnarlError
from unsnarl.lab import presence
from unsnarl.lab.experiment import Case, Confinement, Experiment, Figures, Variant

PROGRAMS = Path(__file__).parents[1] / "programs"
CONFINE = Path(__file__).with_name("confine.py")

STRACE_LINE = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$")
"""A line of ``strace -c``: share, seconds, microseconds a call, calls, errors if any, name."""


class RunFailed(UnsnarlError):  # noqa: N818 -- a result, and no mistake of the caller's
    """Say why a run has no figures."""


class TimedOut(RunFailed):
    """Say that a run exceeded its time limit, or was skipped because an earlier run did."""

    limit_s: float
    is_spared: bool
    """Whether the run was skipped."""

    def __init__(self, limit_s: float, *, is_spared: bool = False) -> None:
        """Keep the limit, and whether the run was skipped."""
        known = "not run: that or a smaller size has given "
        super().__init__(f"{known if is_spared else ''}no result within {limit_s:g} s")
        self.limit_s, self.is_spared = limit_s, is_spared


class LaunchContext(NamedTuple):
    """The working directory of a command, and the variables that are added to its environment."""

    directory: str
    variables: Mapping[str, str]


class Run(NamedTuple):
    """A case of an experiment in one variant, with the measured interpreter."""

    experiment: Experiment
    case: Case
    variant: Variant
    python: str

    def interpreter(self) -> str:
        """Return the interpreter that runs the program."""
        if self.variant.interpreter == "python":
            return self.python
        return presence.other_interpreter(self.variant.interpreter) or self.variant.interpreter

    def command(self, *words: str) -> list[str]:
        """Return the command that runs a program in this variant, given the words after the interpreter."""
        if self.variant.launcher in ("run", "green"):
            green = ("--green",) if self.variant.launcher == "green" else ()
            return [self.python, "-P", "-m", "unsnarl", "run", *green, *self.variant.options, *words]
        return [self.interpreter(), *words]

    def program(self) -> list[str]:
        """Return the command of the experiment's program for this case."""
        path = str(PROGRAMS / self.experiment.program)
        return self.command(path, *self.case.arguments, *self.variant.words)


class Done(NamedTuple):
    """The output and the times of a process that ended with status 0."""

    stdout: str
    elapsed_s: float
    user_s: float
    system_s: float


def measure(run: Run) -> Figures:
    """Carry out a run and return its figures.

    Raises:
        RunFailed: the run has no figures.
    """
    if run.experiment.measure is not None:
        return run.experiment.measure(run)
    if run.case.is_traced:
        return count_calls(run.program(), run.case)
    done = execute(run.program(), run.case.confinement, run.case.limit_s)
    figures: Figures = printed_figures(done.stdout)
    return {"user_s": done.user_s, "system_s": done.system_s, **figures}


def printed_figures(stdout: str) -> Figures:
    """Return the figures in the last line of a program's output.

    Raises:
        RunFailed: the program printed no figures.
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
    """Return the command, preceded by the program that confines it and binds its life to this process's.

    Confining and binding start an interpreter before the command. A command that is neither confined nor
    ``is_bound`` starts without it, since that start would be measured; SIGKILL of this process does not end it.
    """
    if confinement == Confinement() and not is_bound:
        return list(command)
    cores = "all" if confinement.cores is None else str(confinement.cores)
    policy = "rr" if confinement.is_round_robin else "other"
    return [sys.executable, "-I", "-S", str(CONFINE), cores, policy, str(os.getpid()), *command]


def environment() -> dict[str, str]:
    """Return the environment for measured processes: this one without the variables of unsnarl and python."""
    removed = ("UNSNARL", "PYTHON", "GEVENT")
    return {name: value for name, value in os.environ.items() if not name.startswith(removed)}


_running: set[int] = set()
"""The process groups of the current runs."""


def end_all() -> None:
    """Kill all running processes; the threads that wait for them get a failed run."""
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
    """Start a command in a new process group, and kill the group at the end of the block.

    ``context``: its working directory and variables; without it, a temporary directory.

    Raises:
        RunFailed: the command cannot be started.
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
    """Run a command to its end, in a context or in a temporary directory.

    Raises:
        TimedOut: the command did not end within ``limit_s`` seconds.
        RunFailed: the command did not end with status 0.
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
    """Wait for a process and kill it at its time limit; return its status and its resource usage."""
    is_late = threading.Event()

    def kill() -> None:
        is_late.set()
        _kill(process.pid)

    timer = threading.Timer(limit_s, kill)
    timer.start()
    try:
        wait_for_the_end(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return (LATE if is_late.is_set() else process.returncode), usage


LATE = -1000
"""The status of a process that was killed at its time limit."""


def _failure(status: int, complaints: str) -> str:
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return f"{how}: {lines[-1]}" if lines else how
