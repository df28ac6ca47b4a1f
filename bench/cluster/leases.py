"""Which locks outlive what a program does to its GIL, and what ten thousand leases cost.

A variant runs in a process of its own: it takes its lock, lets the load run, and then asks whether it still has it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cluster import answers
from bench.cluster.peers import Etcd3gw, Ours, PythonRedisLock, RedisPy

TTL_S = 2.0
LOADS = ("call", "threads", "tasks")
VARIANTS: dict[str, Callable[[], Any]] = {
    "unsnarl on redis": lambda: Ours("redis", TTL_S),
    "unsnarl on postgres": lambda: Ours("postgres", TTL_S),
    "unsnarl on etcd": lambda: Ours("etcd", TTL_S),
    "redis-py, a renewing thread": lambda: RedisPy(TTL_S),
    "python-redis-lock": lambda: PythonRedisLock(TTL_S, is_renewed=True),
    "etcd3gw, a renewing thread": lambda: Etcd3gw(TTL_S),
}


def call(_seconds: float) -> None:
    """Keep the GIL in one C call for three times the ttl."""
    ctypes.PyDLL(None).usleep(int(3 * TTL_S * 1e6))  # a PyDLL keeps the GIL


def threads(seconds: float) -> None:
    """Compute in eight threads."""
    end = time.monotonic() + seconds

    def compute() -> None:
        while time.monotonic() < end:
            sum(range(10_000))

    running = [threading.Thread(target=compute) for _ in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def tasks(seconds: float) -> None:
    """Run a thousand tasks that compute, in a loop of asyncio."""
    end = time.monotonic() + seconds

    async def compute() -> None:
        while time.monotonic() < end:
            sum(range(10_000))
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*(compute() for _ in range(1000)))

    asyncio.run(all_of_them())


def try_one(variant: str, load: str, seconds: float) -> bool:
    """Tell whether the lock is still held after the load; in this process."""
    lock = VARIANTS[variant]()
    lock.acquire()
    getattr(lock, "keep_renewing", lambda: None)()
    {"call": call, "threads": threads, "tasks": tasks}[load](seconds)
    return bool(lock.is_held())


def measure(seconds: float) -> dict[str, Any]:
    """Return of each variant which loads its lock has outlived; they run at once, on a machine as busy for each.

    Beside it, the milliseconds of the longest answer of each store meanwhile, to a plain client.
    """
    found: dict[str, dict[str, bool]] = {variant: {} for variant in VARIANTS}
    longest: dict[str, dict[str, float]] = {store: {} for store in answers.STORES}
    for load in LOADS:
        with answers.Answers() as asked:
            run_all(found, load, seconds)
        for store, milliseconds in asked.longest_ms.items():
            longest[store][load] = milliseconds
    return {"held": found, "longest_answer_ms": longest}


def run_all(found: dict[str, dict[str, bool]], load: str, seconds: float) -> None:
    """Note of each variant whether its lock has outlived one load."""
    running: dict[str, subprocess.Popen[str]] = {}
    for variant in VARIANTS:
        command = [sys.executable, "-m", "bench.cluster.leases", variant, load, str(seconds)]
        running[variant] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for variant, process in running.items():
        said, _ = process.communicate()
        found[variant][load] = json.loads(said.splitlines()[-1])


def ten_thousand(store: str, count: int, seconds: float) -> dict[str, float]:
    """Return what holding that many leases costs: threads, requests a second, and percent of a core."""
    ours = Ours(store, 10.0)
    holds = [ours.jobs.semaphore(f"s{number % 100}", count).acquire() for number in range(count)]
    before, cpu = ours.jobs.statistics()["requests"], time.process_time()
    time.sleep(seconds)
    requests = ours.jobs.statistics()["requests"] - before
    share = (time.process_time() - cpu) / seconds * 100
    native = sum(path.read_text() == "unsnarl-cluster\n" for path in Path("/proc/self/task").glob("*/comm"))
    lost = sum(hold.lost.is_set() for hold in holds if hold is not None)
    ours.close()
    return {
        "leases": count,
        "threads": native,
        "requests_per_s": requests / seconds,
        "core_percent": share,
        "lost": lost,
    }


if __name__ == "__main__":
    print(json.dumps(try_one(sys.argv[1], sys.argv[2], float(sys.argv[3]))), flush=True)
    os._exit(0)  # without giving the lock back: a peer that has lost it raises there
