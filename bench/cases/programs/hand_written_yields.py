"""A computation that gives the GIL away by hand, by a short sleep in its loop.

Reported: run-llama/llama_index, pull request 11049; angr, pull request 1357
Figure: late_p99_ms, ms, less is better: how late another thread wakes up beside the computation without yields
Figure: work_with_yields, rounds, more is better: what the computation does with a yield in each round
Figure: work_without, rounds, more is better: what it does without
"""

from __future__ import annotations

import threading
import time

from parts import SECONDS, percentile, report


def watched(has_yields: bool) -> tuple[int, float]:
    """Return the rounds of the computation, and the lateness of the other thread in milliseconds."""
    late: list[float] = []
    is_over = threading.Event()

    def other() -> None:
        while not is_over.is_set():
            began = time.perf_counter()
            time.sleep(0.002)
            late.append((time.perf_counter() - began - 0.002) * 1e3)

    thread = threading.Thread(target=other)
    thread.start()
    rounds, end = 0, time.perf_counter() + SECONDS / 2
    while time.perf_counter() < end:
        sum(range(2000))
        rounds += 1
        if has_yields:
            time.sleep(0.0001)
    is_over.set()
    thread.join()
    return rounds, percentile(late, 0.99)


with_yields, _ = watched(True)
without, late_ms = watched(False)
report(late_p99_ms=late_ms, work_with_yields=with_yields, work_without=without)
