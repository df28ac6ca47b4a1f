"""Three programs whose time grows with the square of their threads on a stock interpreter.

Each is the smallest of its kind: every thread that already runs keeps giving up
the GIL and asking for it again, and the program's progress depends on one more
thread getting its turn.

``start``: n threads are started; ``Thread.start`` waits for each new thread.
``mutex``: n threads pass one lock along, then run on.
``wakeup``: the last of n threads releases a semaphore for all the others.

They follow the three examples of the aiologic documentation's chapter on
performance ("A world full of squares", Ilya Egorov, CC-BY-4.0), written anew.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from bench import run

SMALL_STACK_BYTES = 256 * 1024
"""Thousands of threads: the default of 8 MiB each would only measure mappings."""


def pause() -> None:
    """Give up the GIL for one short system call, as a thread doing I/O does."""
    time.sleep(0)


def run_all(work: Callable[[], None], n: int) -> None:
    """Start ``n`` threads on ``work`` and wait for all of them."""
    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start(n: int) -> float:
    """Start n threads, each of which runs until all are started; return seconds."""
    missing = [None] * n

    def work() -> None:
        missing.pop()
        while missing:
            pause()

    began_s = time.perf_counter()
    run_all(work, n)
    return time.perf_counter() - began_s


def mutex(n: int) -> float:
    """Pass one lock through n waiting threads, each running on afterwards; return seconds."""
    waiting: list[None] = []
    lock = threading.Lock()
    began_s: list[float] = []

    def work() -> None:
        waiting.append(None)
        with lock:
            if not began_s:
                while len(waiting) < n:
                    pause()
                began_s.append(time.perf_counter())
        waiting.pop()
        while waiting:
            pause()

    run_all(work, n)
    return time.perf_counter() - began_s[0]


def wakeup(n: int) -> float:
    """Wake n - 1 threads through a semaphore, each running on until all are up; return seconds."""
    absent = [None] * (n - 1)
    awake: list[None] = []
    semaphore = threading.Semaphore(0)
    began_s: list[float] = []

    def work() -> None:
        try:
            absent.pop()
        except IndexError:  # the last to come wakes the others
            began_s.append(time.perf_counter())
            for _ in range(n - 1):
                semaphore.release()
        else:
            semaphore.acquire()
        awake.append(None)
        while len(awake) < n:
            pause()

    run_all(work, n)
    return time.perf_counter() - began_s[0]


PROGRAMS = {"start": start, "mutex": mutex, "wakeup": wakeup}


def main() -> None:
    """Run one program once and print its elapsed time."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("--program", choices=tuple(PROGRAMS), default="start")
    parser.add_argument("-n", "--threads", type=int, default=400)
    arguments = parser.parse_args()
    threading.stack_size(SMALL_STACK_BYTES)
    run.begin(arguments)
    elapsed_s = PROGRAMS[arguments.program](arguments.threads)
    parameters = {"program": arguments.program, "threads": arguments.threads}
    run.print_line("squares", arguments, parameters, {"elapsed_s": elapsed_s}, run.stats(arguments))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
