"""A storm of commands, as of a test-suite: a thousand of them, on all cores."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from unsnarl.lab.experiment import Case, Experiment, Figure, Figures
from unsnarl.lab.running import commands
from unsnarl.lab.running.process import Run, end_all
from unsnarl.lab.variants import PACKED, PLAIN, WARM

COUNTS, QUICK_COUNT = (100, 1000), 10
POLL_S = 0.05
"""Seconds between two checks whether a thread has started another process after all were ended."""


def measure(run: Run) -> Figures:
    """Run a command many times, as many at a time as there are cores.

    Raises:
        RunFailed: a command is not installed, or failed.
    """
    name, count = run.case.arguments
    with commands.prepared(run, commands.COMMANDS[name]) as command:
        before, began_s = processor_s(command), time.perf_counter()
        repeat(lambda: commands.start(run, command), int(count))
        elapsed_s = time.perf_counter() - began_s
        after = processor_s(command)
    figures: Figures = {"elapsed_s": elapsed_s, "each_ms": elapsed_s / int(count) * 1e3}
    if before.keys() == after.keys():  # else a server was replaced, and its account is lost
        figures["cpu_s"] = sum(after.values()) - sum(before.values())
    return figures


def processor_s(command: commands.Prepared) -> dict[int, float]:
    """Return the processor time of the started processes, and of each server with its workers."""
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {os.getpid(): ours.ru_utime + ours.ru_stime} | commands.server_times(command.context)


def repeat(act: Callable[[], Any], count: int) -> None:
    """Call a function many times, in as many threads as there are cores; an exception ends the running processes."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        pending: list[Future[Any]] = []
        try:
            pending += (pool.submit(act) for _ in range(count))
            for one in pending:
                one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while running := [one for one in pending if not one.done()]:
                end_all()
                wait(running, POLL_S)
            raise


def cases(count: int, names: tuple[str, ...]) -> tuple[Case, ...]:
    """Return one case for each command."""
    return tuple(
        Case(
            f"{count:,} × {name}",
            (name, str(count)),
            command=commands.script_of(name),
            expected_s=0.2 * count,
            limit_s=600.0,
        )
        for name in names
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
    reading="As many commands run at a time as there are cores. Processor time is that of the "
    "started processes and, of a warm command, of its server and the ended workers; it is missing if "
    "the server was replaced during the run.",
)
