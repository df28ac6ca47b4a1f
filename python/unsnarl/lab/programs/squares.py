"""Three programs whose time grows with the square of their threads on a stock interpreter.

In each, every thread that runs keeps giving up the GIL and asking for it again, and
the program gets on only when one more thread has its turn.

``start``: n threads are started; ``Thread.start`` waits for each new thread.
``mutex``: n threads pass one lock along, and run on.
``semaphore``: the last of n threads wakes all the others, one release after the other.

They follow the examples of the chapter on performance in aiologic's documentation
("A world full of squares", Ilya Egorov, CC-BY-4.0), written anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import measured


def pause() -> None:
    """Give up the GIL for one short system call, as a thread that does I/O does."""
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
    acquire = measured.acquirer(gate)

    def work() -> None:
        try:
            absent.pop()
        except IndexError:  # the last to come
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


def main() -> None:
    """Run one program once."""
    parser = measured.parser(__doc__)
    parser.add_argument("program", choices=tuple(PROGRAMS))
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    library = measured.begin(arguments)
    measured.use_small_stacks()
    measured.tell(elapsed_s=PROGRAMS[arguments.program](library, arguments.threads))
    measured.leave()


if __name__ == "__main__":
    main()
