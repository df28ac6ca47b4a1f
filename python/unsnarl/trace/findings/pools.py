"""Findings about pools: workers that wait for their own pool, no idle worker, pickling for other processes.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict

from unsnarl.trace import lock_lines
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import IN_IO, LOCK, RUNNING, SLEEPING, WAITING_FILES, Location, Process

LEAST_NS = 100_000_000
"""The least time that a worker waits for results, and that pickling takes."""

WAITING_SHARE = 0.3
"""The least share of a worker's life."""

FULL_SHARE = 0.3
"""The least share of the run for which all workers of a pool are busy."""

QUEUED = 2.0
"""Threads that wait for results for so many times the workers' time wait for tasks that no worker has begun."""

TASKS = 3
"""The fewest waits of each worker at one line that stand for several tasks, where nothing else shows them."""

PICKLING_SHARE = 0.1
"""The least share of the run."""

_PICKLES = frozenset(("ForkingPickler.dumps", "_ConnectionBase.recv"))
"""Functions of multiprocessing that compute only while they pickle and unpickle; ``Queue.get`` has its own file."""

_MULTIPROCESSING_QUEUES = "/multiprocessing/queues.py"


_TASKS = frozenset(("_WorkItem.run", "WorkerThread._handle_job"))
"""Functions in which a worker runs a task."""

_TRIO_THREADS = "trio/_core/_thread_cache.py"
_ANYIO_THREADS = "anyio/_backends/_asyncio.py"
"""The ends of the files with the threads of `trio.to_thread`, and of `anyio.to_thread` on asyncio."""

_THREAD_POOL = ("multiprocessing/pool.py", "worker")
"""The end of the file, and the function, in which workers of `multiprocessing.pool.ThreadPool` take tasks."""

_RESULTS = frozenset(("Future.result", "ApplyResult.wait"))
"""Functions that wait for the results of a pool of threads."""


def findings(process: Process) -> list[Finding]:
    """Return the findings about the pools of a process."""
    result: list[Finding] = []
    for numbers in _pools(process).values():
        result += _pool_waits(process, numbers) or _full_pool(process, numbers)
    return [*result, *pickling(process)]


def _pools(process: Process) -> dict[str, set[int]]:
    """Return the workers of each pool of threads, by the pool's name."""
    pools: dict[str, set[int]] = defaultdict(set)
    thread_pools: set[int] = set()
    for number, _, node, _ in process.stacks:
        stack = process.own_stack(node)
        if _of_thread_pool(process, stack) is not None:
            thread_pools.add(number)
        elif any(_is_worker(process, line) for line in stack):
            pools[re.sub(r"[-_ ]\d+$", "", process.label(number))].add(number)
    first = 0
    for number in sorted(thread_pools):
        # The workers of a `ThreadPool` have no name of their own, but are started one after another.
        first = first if number - 1 in thread_pools else number
        pools[f"ThreadPool {first}"].add(number)
    return pools


def _of_thread_pool(process: Process, stack: list[Location]) -> int | None:
    """Return how many lines a worker of a `ThreadPool` has in its task; None for any other thread."""
    file, function = _THREAD_POOL
    for index, line in enumerate(stack):
        if line.function == function and line.file.endswith(file) and process.is_library(line):
            return index if any(outer.function == "Thread.run" for outer in stack[index:]) else None
    return None


def _is_worker(process: Process, line: Location) -> bool:
    if line.file.endswith(_TRIO_THREADS):
        return True
    return (line.function == "_worker" and process.is_library(line)) or _is_of_anyio(line)


def _is_of_anyio(line: Location) -> bool:
    return line.function == "WorkerThread.run" and line.file.endswith(_ANYIO_THREADS)


def _is_in_task(process: Process, node: int) -> bool:
    """Tell whether a worker has a task at a stack; one without a task waits for it."""
    stack = process.stack(node)
    inner = list(itertools.takewhile(lambda line: not _is_of_anyio(line), stack))
    if len(inner) < len(stack):
        return not all(line.file.endswith(WAITING_FILES) for line in inner)
    below = _of_thread_pool(process, stack)
    if below is not None:
        # A task in C code has no line of its own.
        return below > 0 or not lock_lines.takes_item(stack[0].file, stack[0].line)
    return any(line.function in _TASKS and _is_of_pool(process, line) for line in stack)


def _is_of_pool(process: Process, line: Location) -> bool:
    return process.is_library(line) or line.file.endswith(_TRIO_THREADS)


def _functions(process: Process, node: int) -> list[str]:
    return [line.function for line in process.stack(node) if process.is_library(line)]


def _pool_waits(process: Process, numbers: set[int]) -> list[Finding]:
    """Find a pool of threads all of whose workers wait for the results of further tasks."""
    waiting: dict[int, int] = defaultdict(int)
    places: dict[int, str] = {}
    for number, state, node, time_ns in process.stacks:
        if number in numbers and state == LOCK and {"_WorkItem.run", "Future.result"} <= {*_functions(process, node)}:
            waiting[number] += time_ns
            places[number] = str(process.line_of(node))
    least = min(waiting[number] for number in numbers)
    life = max(sum(process.threads[number].totals_ns) for number in numbers)
    if least < max(LEAST_NS, WAITING_SHARE * life):
        return []
    first = min(numbers)
    who = "the only worker of a thread pool waits" if len(numbers) == 1 else f"all {len(numbers)} workers wait"
    return [
        Finding(
            "pool-waits",
            SEVERE,
            f"{who} for results of other tasks, at {places[first]}: for {duration(least)} and longer",
            ["a worker that waits for a task of its own pool keeps this task from running"],
            process.label(first),
            places[first],
            {"workers": len(numbers), "least_ns": least},
            Remedy(
                "unsnarl will not help here: submit the inner tasks to another pool, "
                "or let the caller submit them and wait"
            ),
        )
    ]


def _full_pool(process: Process, numbers: set[int]) -> list[Finding]:
    """Find a pool whose workers mostly wait in their tasks, and are all busy for long: further tasks wait as well."""
    waits: dict[str, int] = defaultdict(int)
    counts: dict[tuple[int, str], int] = defaultdict(int)
    is_waiting = functools.cache(functools.partial(_waits_in_task, process))
    for number in numbers:
        for _, length_ns, state, node in process.threads[number].stretches:
            if state in (LOCK, IN_IO, SLEEPING) and node and is_waiting(number, node):
                place = str(process.line_of(node))
                waits[place] += length_ns
                counts[number, place] += 1
    full_ns = _all_busy_ns(process, numbers)
    if full_ns < max(LEAST_NS, FULL_SHARE * process.length_ns) or 2 * sum(waits.values()) < full_ns * len(numbers):
        return []
    for_results = sum(
        time_ns
        for number, state, node, time_ns in process.stacks
        if number not in numbers and state == LOCK and not _RESULTS.isdisjoint(_functions(process, node))
    )
    queued = for_results / (full_ns * len(numbers))
    place = max(waits, key=lambda place: waits[place])
    if queued < QUEUED and min(counts[number, place] for number in numbers) < TASKS:
        return []  # each worker may have had one task only
    first = min(numbers)
    who = "the only worker of a thread pool is" if len(numbers) == 1 else f"all {len(numbers)} workers of a pool are"
    details = ["they mostly wait there, and a further task waits until one of them is done"]
    if queued >= QUEUED:
        details.append(f"threads wait for results {queued:.1f} times as long as the workers work for them")
    return [
        Finding(
            "full-pool",
            SEVERE if queued >= QUEUED else NOTABLE,
            f"{who} busy at once for {share(full_ns, process.length_ns)} of the run ({duration(full_ns)}), "
            f"mostly at {place}",
            details,
            process.label(first),
            place,
            {"workers": len(numbers), "full_ns": full_ns},
            Remedy(
                "unsnarl will not help here: allow more workers (`max_workers`, a limiter) if what the tasks wait for "
                "has room, or make the tasks shorter"
            ),
        )
    ]


def _waits_in_task(process: Process, number: int, node: int) -> bool:
    """Tell whether a worker waits in its task at a stack, and not for a processor."""
    return _is_in_task(process, node) and not process.lacks_processor(number, node)


def _all_busy_ns(process: Process, numbers: set[int]) -> int:
    """Return for how long all workers had a task at once. A worker without one waits for a lock in `_worker`."""
    changes: list[tuple[int, int]] = []
    for number in numbers:
        for begin, length_ns, state, node in process.threads[number].stretches:
            if state != LOCK or (node and _is_in_task(process, node)):
                changes += [(begin, 1), (begin + length_ns, -1)]
    busy, result, last = 0, 0, 0
    for at, change in sorted(changes):
        result += at - last if busy == len(numbers) else 0
        busy, last = busy + change, at
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
