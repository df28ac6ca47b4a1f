"""Three programs whose time grows with the square of their threads on a stock interpreter.

In each program every running thread keeps releasing the GIL and requesting it again, and
the program proceeds only when one more thread gets the GIL.

``start``: n threads are started; ``Thread.start`` waits for each new thread.
``mutex``: n threads pass one lock along, and run on.
``semaphore``: the last of n threads wakes all the others, one release after the other.

``squares.py`` runs them for the laboratory, which imports this file by path, in any Python from
3.8 on, and ``bench/gil/squares.py`` for the benchmarks. Invariant: only the standard library is imported.

They follow the examples of the chapter on performance in aiologic's documentation
("A world full of squares", Ilya Egorov, CC-BY-4.0); the code is new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


def pause() -> None:
    """Release the GIL for one short system call, as a thread that does I/O does."""
    time.sleep(0)


def run_all(work: Callable[[], None], n: int) -> None:
    """Start n threads and wait for them."""
    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start(_library: Any, n: int) -> float:
    """Start n threads, each of which runs until all are started; return seconds."""
    missing = [None] * n

    def work() -> None:
        missing.pop()
        while missing:
            pause()

    began_s = time.perf_counter()
    run_all(work, n)
    return time.perf_counter() - began_s


def mutex(library: Any, n: int) -> float:
    """Pass a lock through n threads that wait for it, each running on afterwards; return seconds."""
    here: list[None] = []
    began_s: list[float] = []
    lock = library.Lock()

    def work() -> None:
        here.append(None)
        with lock:
            if not began_s:
                while len(here) < n:
                    pause()
                began_s.append(time.perf_counter())
        here.pop()
        while here:
            pause()

    run_all(work, n)
    return time.perf_counter() - began_s[0]


def semaphore(library: Any, n: int) -> float:
    """Wake n - 1 threads one by one, each running on until all are up; return seconds."""
    absent = [None] * (n - 1)
    awake: list[None] = []
    began_s: list[float] = []
    gate = library.Semaphore(0)
    acquire = getattr(gate, "green_acquire", None) or gate.acquire  # aiologic's name for it in threads

    def work() -> None:
        try:
            absent.pop()
        except IndexError:  # the last to arrive
            began_s.append(time.perf_counter())
            for _ in range(n - 1):
                gate.release()
        else:
            acquire()
        awake.append(None)
        while len(awake) < n:
            pause()

    run_all(work, n)
    return time.perf_counter() - began_s[0]


PROGRAMS = {"start": start, "mutex": mutex, "semaphore": semaphore}
