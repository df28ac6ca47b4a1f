"""A process is killed while it holds a lock between processes: how long another one waits for it, at most 1 s.

Reported: noxdafox/pebble, issue 163; birdnet-team/birdnet, issue 73; CroatianMeteorNetwork/RMS, pull request 935; \
CPython, issues 88304 and 96062
Figure: multiprocessing_ms, ms, less is better: until a waiter of `multiprocessing.Lock` knows; 1,000 is never
Figure: unsnarl_ms, ms, less is better, against multiprocessing_ms: until a waiter of `unsnarl.ipc.Lock` knows
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from typing import Any

from parts import report

from unsnarl import ipc

LIMIT_S = 1.0
FORK = multiprocessing.get_context("fork")


def hold(lock: Any, has_it: Any) -> None:
    """Take the lock, say so, and never give it back."""
    lock.acquire()
    has_it.send(True)
    signal.pause()


def waited_ms(lock: Any) -> float:
    """Return how long this process waits for the lock after its holder was killed."""
    mine, theirs = FORK.Pipe()
    holder = FORK.Process(target=hold, args=(lock, theirs))
    holder.start()
    mine.recv()
    os.kill(holder.pid or 0, signal.SIGKILL)
    holder.join()
    began = time.perf_counter()
    with contextlib.suppress(ipc.OwnerDied):
        lock.acquire(timeout=LIMIT_S)
    return (time.perf_counter() - began) * 1e3


report(multiprocessing_ms=waited_ms(FORK.Lock()), unsnarl_ms=waited_ms(ipc.Lock()))
