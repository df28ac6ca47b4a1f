"""Speed of primitives between processes: unsnarl's, multiprocessing's and those of peers, in one run.

    python -m bench.ipc.speed [-o RESULTS.json] [--quick]
    python -m bench.ipc.speed --render RESULTS.json

Uncontended operations are timed in one process, all others with children by fork. The variants alternate, and another
one goes first in each round. A ratio to multiprocessing is formed within each round, and the table shows the medians. A
peer (`peers`) appears in the rows of the primitives that it implements itself.
Invariant: all variants run the same function, and only the context differs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.ipc import peers, wakes
from bench.machine import describe
from unsnarl import ipc


def _uncontended(context: Any, factory: str) -> float:
    x = getattr(context, factory)()
    number = 50_000
    return timeit.timeit("x.acquire(); x.release()", globals={"x": x}, number=number) / number * 1e9


def lock(context: Any, _quick: bool) -> float:
    """Nanoseconds to acquire and release an uncontended Lock."""
    return _uncontended(context, "Lock")


def semaphore(context: Any, _quick: bool) -> float:
    """Nanoseconds to acquire and release a Semaphore."""
    return _uncontended(context, "Semaphore")


def rlock(context: Any, _quick: bool) -> float:
    """Nanoseconds to acquire and release an RLock."""
    return _uncontended(context, "RLock")


def _together(context: Any, functions: list[tuple[Any, ...]]) -> float:
    """Run each function in a process of its own; seconds from the moment at which all have started."""
    ready, gate = context.Semaphore(0), context.Event()

    def run(function: Any, *arguments: Any) -> None:
        ready.release()
        gate.wait()
        function(*arguments)

    processes = [context.Process(target=run, args=function) for function in functions]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    start = time.perf_counter()
    gate.set()
    for process in processes:
        process.join()
    return time.perf_counter() - start


def _play(mine: Any, theirs: Any, count: int) -> None:
    for _ in range(count):
        mine.acquire()
        theirs.release()


def ping_pong(context: Any, quick: bool) -> float:
    """Round trips of two processes over two semaphores, per second."""
    count = 1000 if quick else 5000
    one, other = context.Semaphore(1), context.Semaphore(0)
    return count / _together(context, [(_play, one, other, count), (_play, other, one, count)])


def _fight(lock: Any, count: int) -> None:
    for _ in range(count):
        with lock:
            pass


def contended_lock(context: Any, quick: bool) -> float:
    """Acquisitions of one lock by two processes, per second."""
    count = 5000 if quick else 30_000
    shared = context.Lock()
    return 2 * count / _together(context, [(_fight, shared, count)] * 2)


def _produce(queue: Any, count: int) -> None:
    for number in range(count):
        queue.put(number)


def _consume(queue: Any, count: int) -> None:
    for _ in range(count):
        queue.get()


def _items(context: Any, queue: Any, quick: bool) -> float:
    count = 2000 if quick else 15_000
    return count / _together(context, [(_produce, queue, count), (_consume, queue, count)])


def queue_items(context: Any, quick: bool) -> float:
    """Small items through a Queue, one producer and one consumer, per second."""
    return _items(context, context.Queue(), quick)


def simple_queue_items(context: Any, quick: bool) -> float:
    """Like `queue_items`, with unsnarl's Queue and multiprocessing's SimpleQueue."""
    ours = isinstance(context, type(ipc.get_context("fork")))
    return _items(context, context.Queue() if ours else context.SimpleQueue(), quick)


def _meet(barrier: Any, count: int) -> None:
    for _ in range(count):
        barrier.wait()


def barrier_8(context: Any, quick: bool) -> float:
    """Meetings of eight processes at a Barrier, per second."""
    count = 50 if quick else 300
    barrier = context.Barrier(8)
    return count / _together(context, [(_meet, barrier, count)] * 8)


def _answer(event: Any, done: Any, count: int) -> None:
    for number in range(count):
        event[number % 2].wait()
        done.release()


def event_broadcast(context: Any, quick: bool) -> float:
    """Broadcasts of an Event to eight processes that answer, per second."""
    count = 50 if quick else 300
    events, done = [context.Event(), context.Event()], context.Semaphore(0)

    def conduct() -> None:
        for number in range(count):
            events[number % 2].set()
            for _ in range(8):
                done.acquire()
            events[number % 2].clear()

    return count / _together(context, [(conduct,), *[(_answer, events, done, count)] * 8])


class Row(NamedTuple):
    """One row of the table, with its goal."""

    name: str
    measure: Callable[[Any, bool], float]
    goal: float
    """unsnarl over multiprocessing: an upper bound where less is better, else a lower bound."""
    is_time: bool
    peer: str = ""
    """The peer that has this primitive."""


ROWS = [
    Row("Lock acquire+release, ns", lock, 1.2, True, "posix_ipc"),
    Row("Semaphore acquire+release, ns", semaphore, 1.2, True, "posix_ipc"),
    Row("RLock acquire+release, ns", rlock, 1.2, True),
    Row("Semaphore ping-pong, round trips/s", ping_pong, 1.5, False, "posix_ipc"),
    Row("Lock, two processes, acquisitions/s", contended_lock, 1.5, False, "posix_ipc"),
    Row("Queue, items/s", queue_items, 5.0, False, "faster-fifo"),
    Row("Queue against SimpleQueue, items/s", simple_queue_items, 2.0, False),
    Row("Barrier(8), meetings/s", barrier_8, 2.0, False),
    Row("Event to 8, broadcasts/s", event_broadcast, 2.0, False),
]
STANDARD, OURS = "multiprocessing", "unsnarl"
MOST_WAKES = 1
"""The goal: futex wake-ups per hand-off."""


def measure(rounds: int, quick: bool, only: str) -> dict[str, Any]:
    """Return all variants' figures of every round, by row."""
    contexts = {STANDARD: multiprocessing.get_context("fork"), OURS: ipc.get_context("fork"), **peers.available()}
    results: dict[str, Any] = {}
    for row in ROWS:
        if only not in row.name:
            continue
        variants = [name for name in (STANDARD, OURS, row.peer) if name in contexts]
        figures: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(rounds):
            first = number % len(variants)
            for name in variants[first:] + variants[:first]:
                figures[name].append(row.measure(contexts[name], quick))
        results[row.name] = figures
    return results


def count_wakes(rounds: int, only: str) -> dict[str, Any]:
    """Return the futex wake-ups per hand-off of every round, by scene; empty where strace is not permitted."""
    try:
        return {
            scene: {name: [wakes.count(scene, name) for _ in range(rounds)] for name in wakes.LIBRARIES}
            for scene in wakes.SCENES
            if only in scene
        }
    except (OSError, subprocess.SubprocessError) as error:
        print(f"wake-ups are not counted: {error}", file=sys.stderr)
        return {}


def render(results: dict[str, Any]) -> str:
    """Return the results as a Markdown table, each with its goal."""
    lines = ["| work | multiprocessing | unsnarl | ratio (spread) | goal | | peer |", "|---" * 7 + "|"]
    for row in ROWS:
        if row.name not in results:
            continue
        theirs, ours = (results[row.name][name] for name in (STANDARD, OURS))
        ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
        ratio = statistics.median(ratios)
        met = ratio <= row.goal if row.is_time else ratio >= row.goal
        peer = results[row.name].get(row.peer)
        lines.append(
            f"| {row.name} | {statistics.median(theirs):,.0f} | {statistics.median(ours):,.0f} "
            f"| {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) "
            f"| {'≤' if row.is_time else '≥'} {row.goal:g} | {'met' if met else '**missed**'} "
            f"| {f'{row.peer}: {statistics.median(peer):,.0f}' if peer else '–'} |"
        )
    return "\n".join(lines)


def render_wakes(counts: dict[str, Any]) -> str:
    """Return the wake-ups as a Markdown table: the median, and the maximum of all rounds."""
    lines = ["| hand-off by | multiprocessing | unsnarl | unsnarl, most | goal | |", "|---" * 6 + "|"]
    for scene, figures in counts.items():
        ours = figures[OURS]
        lines.append(
            f"| {scene} | {statistics.median(figures[STANDARD]):.2f} | {statistics.median(ours):.2f} "
            f"| {max(ours):.3f} | ≤ {MOST_WAKES} | {'met' if max(ours) <= MOST_WAKES else '**missed**'} |"
        )
    return "\n".join(lines)


def page(document: dict[str, Any]) -> str:
    """Return the page of a file of results."""
    about = document["machine"]
    return f"""# Primitives between processes

Written by `python -m bench.ipc.speed`; its functions describe the rows. The primitives of multiprocessing, of
`unsnarl.ipc` and, where a peer has the same, of the peer alternate in one run. The table shows medians, and the ratios
of `unsnarl.ipc` to multiprocessing with the minimum and the maximum of all rounds.

CPython {about["python"]["version"]}, {about["cores"]} × {about["cpu"]}, Linux {about["kernel"]}.
Sources {about["commit"]}.

{render(document["results"])}

Futex wake-ups per hand-off, counted by strace, on one processor (explained in `bench.ipc.wakes`):

{render_wakes(document["wakes"])}"""


def main() -> None:
    """Measure, or print the page of a file of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("--render", metavar="RESULTS", help="print the page of a file, and measure nothing")
    parser.add_argument("--quick", action="store_true", help="does everything work?")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    arguments = parser.parse_args()
    if arguments.render:
        with open(arguments.render) as file:
            print(page(json.load(file)))
        return
    document = {
        "machine": describe(sys.executable),
        "results": measure(1 if arguments.quick else 7, arguments.quick, arguments.only),
        "wakes": count_wakes(1 if arguments.quick else 5, arguments.only),
    }
    print(page(document))
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump(document, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
