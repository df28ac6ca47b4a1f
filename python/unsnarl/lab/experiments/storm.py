"""A storm of commands, as a test-suite makes it: a thousand of them, on all cores at once."""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor

from unsnarl.lab import commands
from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.process import Figures, Run, execute
from unsnarl.lab.variants import PACKED, PLAIN, WARM

COUNTS, QUICK_COUNT = (100, 1000), 10


def measure(run: Run) -> Figures:
    """Run a command many times, as many at a time as there are cores.

    Raises:
        RunFailed: a command is not there, or failed.
    """
    name, count = run.case.arguments
    limit_s, confinement = run.case.limit_s, run.case.confinement
    with commands.prepared(run, commands.COMMANDS[name]) as command:
        before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            words, directory = command
            for pending in [pool.submit(execute, words, confinement, limit_s, directory) for _ in range(int(count))]:
                pending.result()
        elapsed_s = time.perf_counter() - began_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"elapsed_s": elapsed_s, "cpu_s": cpu_s, "each_ms": elapsed_s / int(count) * 1e3}


def cases(count: int, names: tuple[str, ...]) -> tuple[Case, ...]:
    """Return one case for each command."""
    return tuple(
        Case(f"{count:,} × {name}", (name, str(count)), expected_s=0.2 * count, limit_s=600.0) for name in names
    )


EXPERIMENT = Experiment(
    name="storm",
    source="003: Python's start-up time",
    title="A storm of commands",
    question="How long does a test-suite take that starts a command a thousand times, on all cores?",
    program="",
    figures=(
        Figure("elapsed_s", "time", "s"),
        Figure("cpu_s", "processor time", "s"),
        Figure("each_ms", "time per command", "ms"),
    ),
    variants=(PLAIN, WARM, PACKED),
    cases=tuple(case for count in COUNTS for case in cases(count, commands.STORM)),
    quick=cases(QUICK_COUNT, commands.QUICK_STORM),
    pairs=3,
    measure=measure,
    reading="As many commands run at a time as there are cores. Processor time is that of the started processes.",
)
