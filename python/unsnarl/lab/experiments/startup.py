"""The start of the interpreter and of real commands: time, processor time, system calls."""

from __future__ import annotations

import statistics

from unsnarl.doctor import warmth
from unsnarl.lab import commands
from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.process import Done, Figures, Run, RunFailed, count_calls, execute
from unsnarl.lab.variants import PACKED, PLAIN, WARM

STARTS, QUICK_STARTS = 10, 2
"""Starts in a run, whose median is the run's figure."""


def measure(run: Run) -> Figures:
    """Start a command some times, or once with its system calls counted.

    Raises:
        RunFailed: it is not there, or failed.
    """
    name, starts = run.case.arguments
    with commands.prepared(run, commands.COMMANDS[name]) as command:
        if run.case.is_traced:
            return count_calls(command.words, run.case, command.directory)
        done = [_start(run, command) for _ in range(int(starts))]
    return {
        "elapsed_ms": statistics.median(one.elapsed_s for one in done) * 1e3,
        "cpu_ms": statistics.median(one.user_s + one.system_s for one in done) * 1e3,
    }


def _start(run: Run, command: commands.Prepared) -> Done:
    """Start a command; once more, and only that counts, where its server was just being replaced.

    That happens to a warm command when learning has changed what belongs to its key: nothing has run then.
    """
    limit_s, confinement = run.case.limit_s, run.case.confinement
    try:
        return execute(command.words, confinement, limit_s, command.directory)
    except RunFailed as failure:
        if run.variant.launcher != WARM.launcher or not str(failure).startswith(f"exit status {warmth.NOT_WARM}"):
            raise
    name, _ = run.case.arguments
    commands.await_server(run, commands.located(run.python, commands.COMMANDS[name][0]), command.directory)
    return execute(command.words, confinement, limit_s, command.directory)


def cases(starts: int, names: tuple[str, ...]) -> tuple[Case, ...]:
    """Return each command timed, and with its system calls counted."""
    timed = tuple(Case(name, (name, str(starts)), expected_s=0.3 * starts) for name in names)
    traced = tuple(Case(f"{name}, system calls", (name, "1"), expected_s=1.0, is_traced=True) for name in names)
    return tuple(
        case if case.arguments[0] in commands.SCRIPTS else case._replace(variants=(PLAIN.name,))
        for case in (*timed, *traced)
    )


EXPERIMENT = Experiment(
    name="startup",
    source="003: Python's start-up time",
    title="Start-up",
    question="How long does a command take to start, how much of it is processor time, and how many system calls?",
    program="",
    figures=(Figure("elapsed_ms", "time", "ms"), Figure("cpu_ms", "processor time", "ms")),
    variants=(PLAIN, WARM, PACKED),
    cases=cases(STARTS, tuple(commands.COMMANDS)),
    quick=cases(QUICK_STARTS, commands.QUICK),
    pairs=5,
    measure=measure,
    reading="From the start of the process to its end, seen from outside. A warm command's processor time is its "
    "client's alone: the server and its workers are no children of it. So are its system calls.",
)
