"""Calls of threads that run the engine themselves: what they must not break.

A series of short calls has the native thread step aside; ``statistics()["direct"]`` counts the calls that then needed
no other thread.
"""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster

LIMIT = 20_000


def call_until_direct(jobs: "Cluster", least: int = 10) -> None:
    """Acquire and release a lock until that many calls more were direct."""
    lock = jobs.lock("series")
    begin = jobs.statistics()["direct"]
    for _ in range(LIMIT):
        with lock:
            pass
        if jobs.statistics()["direct"] >= begin + least:
            return
    pytest.fail(f"none of {LIMIT} pairs ran the engine itself")


def test_series_of_calls_needs_no_other_thread(jobs: "Cluster") -> None:
    """Short calls that follow each other closely run the engine themselves."""
    call_until_direct(jobs)


def test_renewals_go_on_during_a_series(jobs: "Cluster") -> None:
    """A lease outlives several times its ttl of direct calls."""
    with jobs.lock("kept", ttl=0.6) as hold:
        end = time.monotonic() + 3 * 0.6
        while time.monotonic() < end:
            call_until_direct(jobs, 1)
        hold.check()


def test_renewals_go_on_after_a_series(jobs: "Cluster") -> None:
    """The native thread comes back when nobody calls any more."""
    with jobs.lock("kept", ttl=0.6) as hold:
        call_until_direct(jobs)
        assert not hold.lost.wait(3 * 0.6)


def test_two_threads_and_a_task_share_a_connection(jobs: "Cluster") -> None:
    """Direct calls, those of a second thread and those of a loop all get their answers."""
    done: list[str] = []

    def call(name: str) -> None:
        for _ in range(200):
            with jobs.lock(name):
                pass
        done.append(name)

    async def take() -> None:
        for _ in range(200):
            async with jobs.lock("of a task"):
                pass
        done.append("of a task")

    call_until_direct(jobs)
    threads = [threading.Thread(target=call, args=(name,)) for name in ("first", "second")]
    threads.append(threading.Thread(target=lambda: asyncio.run(take())))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == ["first", "of a task", "second"]


def test_waiter_is_told_during_a_series(jobs: "Cluster") -> None:
    """A thread that waits for a lock gets it while another makes direct calls."""
    got = threading.Event()

    def wait() -> None:
        with jobs.lock("awaited"):
            got.set()

    call_until_direct(jobs)
    hold = jobs.lock("awaited").acquire()
    assert hold is not None
    waiter = threading.Thread(target=wait)
    waiter.start()
    lock = jobs.lock("series")
    while not jobs.lock("awaited").statistics()["waiting"]:
        with lock:
            pass
    hold.release()
    for _ in range(LIMIT):
        with lock:
            pass
        if got.is_set():
            break
    waiter.join(30)
    assert got.is_set()


def test_signal_ends_a_call_of_a_series(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    """A handler that raises ends a call that runs the engine itself, and leaves nothing behind."""
    blocker = connect().lock("blocked").acquire()
    assert blocker is not None

    def interrupt(_number: int, _frame: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        call_until_direct(jobs)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        with pytest.raises(InterruptedError):
            jobs.lock("blocked").acquire(timeout=30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    blocker.release()
    with jobs.lock("blocked"):
        pass


def test_fork_during_a_series_leaves_the_connection_to_the_parent(jobs: "Cluster") -> None:
    """A child made while the native thread is aside does not run its parent's engine."""
    call_until_direct(jobs)
    with jobs.lock("parent's") as hold:
        child = os.fork()
        if child == 0:
            with jobs.lock("child's"):
                os._exit(0 if jobs.lock("parent's").acquire(blocking=False) is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        hold.check()
        call_until_direct(jobs)


def test_series_ends_with_the_connection(url: str) -> None:
    """A connection is closed while its native thread is aside, and the thread ends."""
    from unsnarl import cluster

    jobs = cluster.connect(url)
    call_until_direct(jobs)
    jobs.close()
    while "unsnarl-cluster" in native_threads():
        pass


def native_threads() -> list[str]:
    """Return the names of this process's threads, as the kernel has them."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            names.append((task / "comm").read_text(encoding="utf-8").strip())
    return names
