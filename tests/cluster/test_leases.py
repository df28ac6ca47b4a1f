"""A lease outlives what the program does to its GIL, and is lost when it must be: leases of real processes."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster, Hold

LIMIT_S = 60.0
TTL_S = 1.0

HOLDER = """
import sys, time
from unsnarl import cluster
jobs = cluster.connect(sys.argv[1])
hold = jobs.lock("a", ttl=1).acquire()
print(hold.fence, flush=True)
sys.stdin.readline()
print("lost" if hold.lost.is_set() else "held", flush=True)
try:
    hold.check()
    hold.release()
except cluster.LeaseLost as error:
    print(error, flush=True)
"""


def held(hold: "Hold | None") -> "Hold":
    assert hold is not None
    return hold


def start_holder(url: str) -> tuple["subprocess.Popen[str]", int]:
    """Start a process that holds the lock `a`, and return it with its fence."""
    command = [sys.executable, "-c", HOLDER, url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_c_call_that_keeps_the_gil_loses_no_lease(jobs: "Cluster", store: str) -> None:
    # etcd gives no lease shorter than its election takes; the holder's own deadline is the ttl that was asked for.
    hold = held(jobs.lock("a", ttl=TTL_S).acquire())
    before = jobs.statistics()["renewals"]
    ctypes.PyDLL(None).usleep(int(3 * TTL_S * 1e6))  # a PyDLL keeps the GIL
    hold.check()
    assert jobs.statistics()["renewals"] - before >= 6, store
    hold.release()


def test_threads_that_compute_lose_no_lease(jobs: "Cluster") -> None:
    hold = held(jobs.lock("a", ttl=TTL_S).acquire())
    is_over = threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            sum(range(1000))

    threads = [threading.Thread(target=compute) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert hold.lost.wait(4 * TTL_S) is False
    is_over.set()
    for thread in threads:
        thread.join()
    hold.check()


def test_a_killed_holders_lock_goes_to_the_next(url: str, jobs: "Cluster") -> None:
    process, fence = start_holder(url)
    process.kill()
    process.communicate()
    hold = held(jobs.lock("a").acquire(timeout=LIMIT_S))
    assert hold.fence > fence
    hold.release()


def test_a_stopped_holder_knows_at_its_next_call(url: str, jobs: "Cluster") -> None:
    process, fence = start_holder(url)
    process.send_signal(signal.SIGSTOP)
    hold = held(jobs.lock("a").acquire(timeout=LIMIT_S))
    assert hold.fence > fence
    process.send_signal(signal.SIGCONT)
    said, _ = process.communicate("go\n", timeout=LIMIT_S)
    assert said.splitlines()[0] == "lost"
    assert "no renewal was confirmed within its ttl" in said or "the store has ended it" in said
    hold.release()


def test_an_exit_gives_the_lock_back(url: str, jobs: "Cluster") -> None:
    code = "import sys\nfrom unsnarl import cluster\ncluster.connect(sys.argv[1]).lock('a', ttl=3600).acquire()"
    subprocess.run([sys.executable, "-c", code, url], check=True, timeout=LIMIT_S)
    held(jobs.lock("a").acquire(timeout=LIMIT_S)).release()


def test_a_fork_does_not_hold_what_its_parent_holds(url: str) -> None:
    code = """
import os, sys, warnings
from unsnarl import cluster
warnings.simplefilter("ignore")
jobs = cluster.connect(sys.argv[1])
lock = jobs.lock("a")
hold = lock.acquire()
child = os.fork()
if not child:
    try:
        hold.check()
    except cluster.LeaseLost as error:
        assert "parent" in str(error), error
    else:
        os._exit(1)
    if lock.acquire(blocking=False) is not None:
        os._exit(2)
    with jobs.lock("child's own") as own:
        own.check()
    os._exit(0)
_, status = os.waitpid(child, 0)
hold.check()
hold.release()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    outcome = subprocess.run(
        [sys.executable, "-c", code, url], check=False, timeout=LIMIT_S, stderr=subprocess.PIPE, text=True
    )
    assert outcome.returncode == 0, outcome.stderr


def test_a_program_that_is_stuck_loses_it_if_it_asked_for_that(
    jobs: "Cluster", connect: "Callable[[], Cluster]"
) -> None:
    from unsnarl.cluster import LeaseLost

    hold = held(jobs.lock("a", progress=0.5).acquire())
    for _ in range(3):
        time.sleep(0.25)
        hold.progress()
    assert hold.lost.wait(LIMIT_S)
    with pytest.raises(LeaseLost, match="progress"):
        hold.check()
    with pytest.raises(LeaseLost):
        hold.progress()
    held(connect().lock("a").acquire(timeout=LIMIT_S)).release()


def test_ctrl_c_ends_a_wait(jobs: "Cluster", connect: "Callable[[], Cluster]") -> None:
    lock = jobs.lock("a")
    with connect().lock("a"):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            lock.acquire()
        timer.join()
    held(lock.acquire(timeout=LIMIT_S)).release()


def test_a_dead_party_breaks_a_barrier(url: str, jobs: "Cluster") -> None:
    from unsnarl.cluster import BrokenBarrierError

    code = """
import sys, threading
from unsnarl import cluster
jobs = cluster.connect(sys.argv[1])
threading.Thread(target=jobs.barrier("b", 3, ttl=1).wait, daemon=True).start()
while jobs.barrier("b", 3).n_waiting < 1: pass
print("there", flush=True)
sys.stdin.readline()
"""
    process = subprocess.Popen([sys.executable, "-c", code, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate()
    with pytest.raises(BrokenBarrierError):
        jobs.barrier("b", 3, ttl=1).wait(LIMIT_S)


def test_ten_thousand_leases_are_one_thread_and_few_messages(jobs: "Cluster", store: str) -> None:
    count = 10_000 if store == "redis" else 500  # the others write each to disk
    lock_threads = threading.active_count()
    native_threads = len(os.listdir("/proc/self/task"))
    holds = [held(jobs.semaphore(f"s{number % 50}", count).acquire()) for number in range(count)]
    assert threading.active_count() == lock_threads
    assert len(os.listdir("/proc/self/task")) == native_threads
    before = jobs.statistics()["requests"]
    time.sleep(4)
    assert jobs.statistics()["requests"] - before <= 3
    for hold in holds:
        hold.check()
