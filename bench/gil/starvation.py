"""Threads that abuse wake-ups against CPU-bound threads: the longest wait of each for the GIL.

An abuser blocks repeatedly for an instant, and so resembles a thread that waits for I/O. Each thread measures its worst
stall: the longest time between two of its steps. For an abuser this is its wake-up plus its wait for the GIL; for a hog
it is the wait for the GIL plus the slices that the kernel gave to other threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from typing import Any

from bench import run
from unsnarl.demo.hogs import burn

BOUND_S_PER_THREAD = 0.050 / 2
"""The promise: 50 ms for each two runnable threads."""


class Pedestrian(threading.Thread):
    """A thread that steps until it is stopped, and records the number of steps and its worst stall."""

    def __init__(self, name: str, step: Any, stop: threading.Event) -> None:
        """``step`` is called repeatedly; ``stop`` ends the thread."""
        super().__init__(name=name, daemon=True)
        self._step = step
        self._stop_event = stop
        self.steps = 0
        self.worst_ns = 0

    def run(self) -> None:
        """Step, and keep the longest time between two steps."""
        clock, step, is_stopping = time.perf_counter_ns, self._step, self._stop_event.is_set
        before_ns = clock()
        while not is_stopping():
            step()
            now_ns = clock()
            self.worst_ns = max(self.worst_ns, now_ns - before_ns)
            before_ns = now_ns
            self.steps += 1
        # A thread that never acquired the GIL has stalled until now.
        self.worst_ns = max(self.worst_ns, clock() - before_ns)


def sleep_step() -> None:
    """Sleep in the kernel, for the shortest possible time."""
    time.sleep(0)


def lock_step() -> None:
    """Block on a lock for the shortest possible time."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=1e-6)


ABUSES = {"sleep": sleep_step, "lock": lock_step}


def figures_of(name: str, threads: list[Pedestrian], seconds: float) -> dict[str, float]:
    """Return the worst and the median stall, and the steps, of one group of threads."""
    if not threads:
        return {}
    stalls_ms = [thread.worst_ns / 1e6 for thread in threads]
    return {
        f"{name}_worst_ms": max(stalls_ms),
        f"{name}_worst_median_ms": statistics.median(stalls_ms),
        f"{name}_steps_per_s": sum(thread.steps for thread in threads) / seconds,
        f"{name}_fewest_steps": min(thread.steps for thread in threads),
    }


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Run all threads for a while; return the stalls of both groups."""
    stop = threading.Event()
    abuse = ABUSES[arguments.abuse]
    hogs = [Pedestrian(f"hog-{i}", burn, stop) for i in range(arguments.hogs)]
    abusers = [Pedestrian(f"abuser-{i}", abuse, stop) for i in range(arguments.abusers)]
    for thread in (*hogs, *abusers):
        thread.start()
    began_s = time.perf_counter()
    threading.Event().wait(arguments.seconds)
    elapsed_s = time.perf_counter() - began_s
    # The counts are read before the threads are stopped: stopping would let late threads catch up.
    result = figures_of("hog", hogs, elapsed_s) | figures_of("abuser", abusers, elapsed_s)
    result["overslept_ms"] = (elapsed_s - arguments.seconds) * 1e3
    result["bound_ms"] = (len(hogs) + len(abusers)) * BOUND_S_PER_THREAD * 1e3
    return result


def main() -> None:
    """Measure once and print."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("-k", "--hogs", type=int, default=1, metavar="K", help="CPU-bound threads")
    parser.add_argument("--abusers", type=int, default=100)
    parser.add_argument("--abuse", choices=tuple(ABUSES), default="sleep")
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    run.begin(arguments)
    run.reset_stats(arguments)
    figures = measure(arguments)
    gil = run.stats(arguments)
    parameters = {
        "hogs": arguments.hogs,
        "abusers": arguments.abusers,
        "abuse": arguments.abuse,
    }
    run.print_line("starvation", arguments, parameters, figures, gil)
    os._exit(0)


if __name__ == "__main__":
    main()
