"""Findings about pools: workers that wait for their own pool, and objects that are pickled for other processes.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import re
from collections import defaultdict

from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import LOCK, RUNNING, Process

LEAST_NS = 100_000_000
"""The least time that a worker waits for results, and that pickling takes."""

WAITING_SHARE = 0.3
"""The least share of a worker's life."""

PICKLING_SHARE = 0.1
"""The least share of the run."""

_PICKLES = frozenset(("ForkingPickler.dumps", "_ConnectionBase.recv"))
"""Functions of multiprocessing that compute only while they pickle and unpickle; ``Queue.get`` has its own file."""

_MULTIPROCESSING_QUEUES = "/multiprocessing/queues.py"


def findings(process: Process) -> list[Finding]:
    """Return the findings about the pools of a process."""
    return [*pool_waits(process), *pickling(process)]


def pool_waits(process: Process) -> list[Finding]:
    """Find pools of threads all of whose workers wait for the results of further tasks."""
    pools: dict[str, set[int]] = defaultdict(set)
    waiting: dict[int, int] = defaultdict(int)
    places: dict[int, str] = {}
    for number, state, node, time_ns in process.stacks:
        functions = [line.function for line in process.stack(node) if process.is_library(line)]
        if "_worker" in functions:
            pools[re.sub(r"\d+$", "", process.label(number))].add(number)
        if state == LOCK and "_WorkItem.run" in functions and "Future.result" in functions:
            waiting[number] += time_ns
            places[number] = str(process.line_of(node))
    result: list[Finding] = []
    for numbers in pools.values():
        least = min(waiting[number] for number in numbers)
        life = max(sum(process.threads[number].totals_ns) for number in numbers)
        if least < max(LEAST_NS, WAITING_SHARE * life):
            continue
        first = min(numbers)
        label = process.label(first)
        who = "the only worker of a thread pool waits" if len(numbers) == 1 else f"all {len(numbers)} workers wait"
        result.append(
            Finding(
                "pool-waits",
                SEVERE,
                f"{who} for results of other tasks, at {places[first]}: for {duration(least)} and longer",
                ["a worker that waits for a task of its own pool keeps this task from running"],
                label,
                places[first],
                {"workers": len(numbers), "least_ns": least},
                Remedy(
                    "unsnarl will not help here: submit the inner tasks to another pool, "
                    "or let the caller submit them and wait"
                ),
            )
        )
    return result


def pickling(process: Process) -> list[Finding]:
    """Find processes that compute for long only to pass objects to each other."""
    times: dict[tuple[int, str], int] = defaultdict(int)
    for number, state, node, time_ns in process.stacks:
        if state == RUNNING and _is_pickling(process, node):
            times[number, str(process.line_of(node))] += time_ns
    total = sum(times.values())
    if total < max(LEAST_NS, PICKLING_SHARE * process.length_ns):
        return []
    number, place = max(times, key=lambda key: times[key])
    label = process.label(number)
    return [
        Finding(
            "pickling",
            NOTABLE,
            f"pickling objects for other processes takes {duration(total)} ({share(total, process.length_ns)} of "
            f"the run), most of it in thread `{label}`",
            [f"at {place}"],
            label,
            place,
            {"total_ns": total},
            Remedy(
                "unsnarl will not help here: pass less. Send names or indices instead of data, use shared memory, "
                "or let each process load its own part"
            ),
        )
    ]


def _is_pickling(process: Process, node: int) -> bool:
    for line in process.stack(node):
        if not process.is_library(line):
            return False
        if line.function in _PICKLES:
            return True
        if line.function == "Queue.get" and line.file.endswith(_MULTIPROCESSING_QUEUES):
            return True
    return False
