"""The square programs with the primitives of unsnarl and of the standard library, without the scheduler.

`mutex` is the laboratory's program (`square_programs`); the others release all waiters by one call.

    python -m bench.primitives.squares PROGRAM LIBRARY THREADS [SWITCH_INTERVAL]

prints seconds. PROGRAM may also be `herd`, which ignores LIBRARY: it shows the cost of the same without any primitive.
A switch interval (seconds) shows the cost of the timeouts of threads that wait for the GIL: with a long interval there
are none.

Invariant: each run is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.machine import ROOT
from bench.primitives.scene import EXPONENT, OURS, STANDARD, Scene
from unsnarl.lab.programs.square_programs import mutex, run_all
from unsnarl.statistics import exponent

THREADS = (50, 100, 200, 400)
MODULES = {STANDARD: "threading", OURS: "unsnarl"}
PAUSE_S = 0


def wakeup(library: Any, n: int) -> float:
    """Wake n - 1 threads through a semaphore; each runs on until all are awake; return seconds."""
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

    run_all(work, n)
    return time.perf_counter() - began[0]


def broadcast(library: Any, n: int) -> float:
    """Set an event that n threads wait for; each runs on until all are awake; return seconds."""
    event = library.Event()
    return _freed(n, event.wait, event.set)


def herd(_library: Any, n: int) -> float:
    """Write a byte for each of n threads that read a pipe; each runs on until all are awake; return seconds."""
    source, sink = os.pipe()
    return _freed(n, lambda: os.read(source, 1), lambda: os.write(sink, bytes(n)))


def _freed(n: int, wait: Callable[[], object], free: Callable[[], object]) -> float:
    """Release n waiting threads; each runs on until all are awake; return seconds."""
    ready: list[None] = []
    awake: list[None] = []

    def work() -> None:
        ready.append(None)
        wait()
        awake.append(None)
        while len(awake) < n:
            time.sleep(PAUSE_S)

    threads = [threading.Thread(target=work) for _ in range(n)]
    for thread in threads:
        thread.start()
    while len(ready) < n:
        time.sleep(0.001)
    began = time.perf_counter()
    free()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


PROGRAMS = {"mutex": mutex, "wakeup": wakeup, "broadcast": broadcast}


def growth(program: str, module: str) -> float:
    """Return the growth exponent of a program's time over its number of threads."""
    times: dict[int, float] = {}
    for n in THREADS:
        command = [sys.executable, "-m", "bench.primitives.squares", program, module, str(n)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
        times[n] = float(done.stdout)
    found = exponent(times)
    assert found is not None
    return found


def scenes() -> list[Scene]:
    """Return every scene of this kind."""
    return [
        Scene(
            f"square program: {program}",
            EXPONENT,
            {library: partial(growth, program, module) for library, module in MODULES.items()},
            ceiling=1.3,
        )
        for program in PROGRAMS
    ]


def main() -> None:
    """Run one program once."""
    program, module, n, *interval_s = sys.argv[1:]
    if interval_s:
        sys.setswitchinterval(float(interval_s[0]))
    threading.stack_size(256 * 1024)
    print((PROGRAMS | {"herd": herd})[program](__import__(module), int(n)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
