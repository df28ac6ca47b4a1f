"""Threads that contend for the GIL, for the programs of the scheduler's tests.

Imported by those programs, not by the tests: they run in separate processes. The import arms
their inner watchdog, which needs no GIL: a program that hangs dumps the stacks of all threads on
stderr and exits with 1. Invariant: no function sleeps to synchronise; each waits for its
condition without a limit.
"""

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

WATCHDOG_S = 500.0
"""Seconds; within the tests' own watchdog, so that the stacks are seen before the process is killed."""

faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)


def guard_child() -> None:
    """Arm the watchdog of a forked child, in which the thread of the other one does not exist.

    A new call of dump_traceback_later would wait for that thread for ever.
    """
    faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
    signal.alarm(int(WATCHDOG_S))


class Threads:
    """Threads that repeat a step until the ``with`` block ends, and count how often."""

    def __init__(self, count: int, step: Callable[[], object], *, daemon: bool = True) -> None:
        """Prepare `count` threads."""
        self.steps = [0] * count
        self._step = step
        self._ends = False
        self._threads = [threading.Thread(target=self._repeat, args=(place,), daemon=daemon) for place in range(count)]

    def _repeat(self, place: int) -> None:
        while not self._ends:
            self._step()
            self.steps[place] += 1

    def __enter__(self) -> Self:
        """Start the threads, and wait until each has done a step."""
        for thread in self._threads:
            thread.start()
        self.await_progress()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the threads end, and wait for them."""
        self._ends = True
        for thread in self._threads:
            thread.join()

    def await_progress(self, steps: int = 1) -> None:
        """Wait until every thread has done so many more steps; the watchdog knows how long is too long."""
        goals = [done + steps for done in self.steps]
        for place, goal in enumerate(goals):
            while self.steps[place] < goal:
                block()


def compute() -> int:
    """Hold the GIL for some ten microseconds."""
    return sum(range(500))


def turn() -> None:
    """Release the GIL and take it again immediately, as a short call into the kernel does."""
    os.stat("/")


def block() -> None:
    """Block for some 60 microseconds: a wake-up, even by a classification by time.

    With less, the thread that waits for the progress of others is CPU-bound itself.
    """
    time.sleep(0)


class PingPong:
    """Two pipes and two ends: every step is a hand-over between two threads that block."""

    def __init__(self) -> None:
        """Start the other end, which echoes until the pipe is closed."""
        self._there, ours = os.pipe(), os.pipe()
        self._back = ours
        threading.Thread(target=self._echo, daemon=True).start()

    def _echo(self) -> None:
        while word := os.read(self._there[0], 1):
            os.write(self._back[1], word)

    def step(self) -> None:
        """Send a word and wait for its echo."""
        os.write(self._there[1], b"x")
        os.read(self._back[0], 1)


def hogs(count: int = 2) -> Threads:
    """Return CPU-bound threads."""
    return Threads(count, compute)


def pollers(count: int = 4) -> Threads:
    """Return threads that continuously return from a blocking call."""
    return Threads(count, block)


def lock_users(count: int = 4) -> Threads:
    """Return threads that are never without a lock to wait for."""
    lock = threading.Lock()

    def step() -> None:
        with lock:
            turn()

    return Threads(count, step)


def work_through(threads: int = 3) -> None:
    """Start threads that compute, block and lock, and wait for their end."""
    lock = threading.Lock()
    done: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            compute()
            turn()
            with lock:
                compute()
        done.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(done) == list(range(threads)), done
