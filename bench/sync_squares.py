"""Time the square programs on our primitives and the standard library's, without the scheduler.

    python bench/sync_squares.py [-n 100 200 400]

Each program is the one of `bench/squares.py`, on the library's own classes. Prints
seconds per number of threads and the growth exponent: the slope of log(time) over
log(threads). Invariant: each run is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from unsnarl.lab.fit import exponent

PAUSE_S = 0


def mutex(library: Any, n: int) -> float:
    """Pass one lock through n waiting threads, each running on afterwards; seconds."""
    waiting: list[None] = []
    lock = library.Lock()
    began: list[float] = []

    def work() -> None:
        waiting.append(None)
        with lock:
            if not began:
                while len(waiting) < n:
                    time.sleep(PAUSE_S)
                began.append(time.perf_counter())
        waiting.pop()
        while waiting:
            time.sleep(PAUSE_S)

    _run(work, n)
    return time.perf_counter() - began[0]


def wakeup(library: Any, n: int) -> float:
    """Wake n - 1 threads through a semaphore, each running on until all are up; seconds."""
    absent: list[None] = [None] * (n - 1)
    awake: list[None] = []
    began: list[float] = []
    semaphore = library.Semaphore(0)

    def work() -> None:
        try:
            absent.pop()
        except IndexError:
            began.append(time.perf_counter())
            semaphore.release(n - 1)
        else:
            semaphore.acquire()
        awake.append(None)
        while len(awake) < n:
            time.sleep(PAUSE_S)

    _run(work, n)
    return time.perf_counter() - began[0]


def broadcast(library: Any, n: int) -> float:
    """Set an event that n threads wait for, each running on until all are up; seconds."""
    ready: list[None] = []
    awake: list[None] = []
    event = library.Event()

    def work() -> None:
        ready.append(None)
        event.wait()
        awake.append(None)
        while len(awake) < n:
            time.sleep(PAUSE_S)

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    while len(ready) < n:
        time.sleep(0.001)
    began = time.perf_counter()
    event.set()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _run(work: Callable[[], None], n: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


PROGRAMS = {"mutex": mutex, "wakeup": wakeup, "broadcast": broadcast}


def _once(program: str, library: str, n: int) -> None:
    threading.stack_size(256 * 1024)
    print(PROGRAMS[program](__import__(library), n), flush=True)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", nargs="+", type=int, default=[100, 200, 400])
    parser.add_argument("--once", nargs=2, metavar=("PROGRAM", "LIBRARY"))
    arguments = parser.parse_args()
    if arguments.once:
        program, library = arguments.once
        _once(program, library, arguments.n[0])
    for program in PROGRAMS:
        for library in ("threading", "unsnarl"):
            times: dict[int, float] = {}
            sizes: list[int] = arguments.n
            for n in sizes:
                command = [sys.executable, __file__, "--once", program, library, "-n", str(n)]
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                times[n] = float(output)
            cells = " ".join(f"n={n}: {elapsed:.3f} s" for n, elapsed in times.items())
            print(f"{program:10} {library:10} {cells}  exponent {exponent(times) or 0:.2f}", flush=True)


if __name__ == "__main__":
    main()
