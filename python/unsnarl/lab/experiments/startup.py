"""The start of the interpreter and of real commands: time, processor time, system calls."""

from __future__ import annotations

import statistics

from unsnarl.lab.experiment import Case, Experiment, Figure, Figures
from unsnarl.lab.running import commands
from unsnarl.lab.running.process import Run, count_calls
from unsnarl.lab.variants import PACKED, PLAIN, WARM

STARTS, QUICK_STARTS = 10, 2
"""Starts per run; their median is the run's figure."""


def measure(run: Run) -> Figures:
    """Start a command several times, or once with its system calls counted.

    Raises:
        RunFailed: the command is not installed, or failed.
    """
    name, starts = run.case.arguments
    with commands.prepared(run, commands.COMMANDS[name]) as command:
        if run.case.is_traced:
            return count_calls(command.words, run.case, command.context)
        done = [commands.start(run, command) for _ in range(int(starts))]
    return {
        "elapsed_ms": statistics.median(one.elapsed_s for one in done) * 1e3,
        "cpu_ms": statistics.median(one.user_s + one.system_s for one in done) * 1e3,
    }


def cases(starts: int, names: tuple[str, ...]) -> tuple[Case, ...]:
    """Return a timed case for each command, and a case that counts its system calls."""
    timed = tuple(Case(name, (name, str(starts)), expected_s=0.3 * starts) for name in names)
    traced = tuple(Case(f"{name}, system calls", (name, "1"), expected_s=1.0, is_traced=True) for name in names)
    return tuple(_fitted(case, commands.script_of(case.arguments[0])) for case in (*timed, *traced))


def _fitted(case: Case, script: str) -> Case:
    """Complete the case of a command; the interpreter and programs that are not Python's can only be plain."""
    return case._replace(command=script, variants=(PLAIN.name,) if script in commands.PLAIN_ONLY else None)


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
    reading="From the start of the process to its end, seen from outside. For a warm command, processor time "
    "and system calls are those of its client alone: the server and its workers are no children of the client.",
)
