"""The throughput of two CPU-bound threads together, as a share of that of one thread alone.

Each thread adds one to its own counter. One thread runs, then two, then one again; the reference is the
mean of the two windows with one thread, so that a change of the processor's clock favours neither side.
"""

from __future__ import annotations

import threading
import time

import measured

STEPS = 1000
"""Additions between two checks of the stop flag."""


def throughput(threads: int, seconds: float) -> float:
    """Return the additions per second of ``threads`` threads together."""
    counts = [0] * threads
    stop: list[None] = []
    ready = threading.Barrier(threads + 1)

    def work(index: int) -> None:
        count = 0
        ready.wait()
        while not stop:
            for _ in range(STEPS):
                count += 1
            counts[index] = count

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    began_s = time.perf_counter()
    time.sleep(seconds)
    stop.append(None)
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - began_s)


def main() -> None:
    """Measure once."""
    parser = measured.parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    measured.begin(arguments)
    before = throughput(1, arguments.seconds / 2)
    together = throughput(arguments.threads, arguments.seconds)
    after = throughput(1, arguments.seconds / 2)
    alone = (before + after) / 2
    measured.print_figures(efficiency=together / alone, together_per_s=together, alone_per_s=alone)


if __name__ == "__main__":
    main()
