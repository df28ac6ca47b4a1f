"""What an acquire and a release cost that nobody is in the way of, in microseconds; in turns, round by round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.cluster.peers import BARE, Etcd3gw, Ours, PythonRedisLock, RedisPy

TTL_S = 10.0


def timed(call: Callable[[], object], times: int) -> float:
    """Return the microseconds of a call, on average."""
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times * 1e6


def pair(lock: Ours | RedisPy | PythonRedisLock | Etcd3gw) -> Callable[[], object]:
    """Return a call that acquires and releases."""

    def both() -> None:
        lock.acquire()
        lock.release()

    return both


def measure(store: str, rounds: int, times: int) -> dict[str, list[float]]:
    """Return the figures of each variant, round by round."""
    locks: dict[str, Ours | RedisPy | PythonRedisLock | Etcd3gw] = {"unsnarl": Ours(store, TTL_S)}
    if store == "redis":
        locks |= {"redis-py": RedisPy(TTL_S), "python-redis-lock": PythonRedisLock(TTL_S, is_renewed=False)}
    elif store == "etcd":
        locks["etcd3gw"] = Etcd3gw(TTL_S)
    calls = {name: pair(lock) for name, lock in locks.items()} | {"bare": BARE[store]()}
    figures: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        timed(call, max(1, times // 10))
    for _ in range(rounds):
        for name, call in calls.items():
            figures[name].append(timed(call, times))
    for lock in locks.values():
        lock.close()
    return figures


def median(figures: list[float]) -> float:
    """Return the middle one."""
    return statistics.median(figures)
