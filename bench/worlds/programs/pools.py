"""Pools of threads and of processes run short tasks: ``pools.py KIND TASKS``.

An operation is a task. Kinds: ``map`` (ThreadPoolExecutor.map, eight workers), ``submit`` (64 workers, each future
waited for), ``to_thread`` and ``run_in_executor`` (asyncio, 16 at a time), ``processes`` (imap of two processes).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from counted import report, timed

AT_A_TIME = 16


def short(number: int) -> int:
    """Do some microseconds of work."""
    return sum(range(number % 50, 100))


def by_map(tasks: int) -> float:
    """Return the seconds of ThreadPoolExecutor.map."""
    with ThreadPoolExecutor(8) as pool:
        return float(timed(lambda: list(pool.map(short, range(tasks)))))


def by_submit(tasks: int) -> float:
    """Return the seconds of 64 workers whose futures are collected as they complete."""
    with ThreadPoolExecutor(64) as pool:
        return float(
            timed(lambda: [done.result() for done in as_completed([pool.submit(short, n) for n in range(tasks)])])
        )


async def _limited(tasks: int, call: Callable[[int], Awaitable[int]]) -> None:
    left = iter(range(tasks))

    async def runner() -> None:
        for number in left:
            await call(number)

    await asyncio.gather(*(runner() for _ in range(AT_A_TIME)))


def by_to_thread(tasks: int) -> float:
    """Return the seconds of asyncio.to_thread."""
    return float(timed(lambda: asyncio.run(_limited(tasks, lambda number: asyncio.to_thread(short, number)))))


def by_executor(tasks: int) -> float:
    """Return the seconds of loop.run_in_executor with a pool of eight."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(8) as pool:
            await _limited(tasks, lambda number: loop.run_in_executor(pool, short, number))

    return float(timed(lambda: asyncio.run(main())))


def by_processes(tasks: int) -> float:
    """Return the seconds of a pool of two processes."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return float(timed(lambda: list(pool.imap(short, range(tasks), chunksize=4))))


KINDS = {
    "map": by_map,
    "submit": by_submit,
    "to_thread": by_to_thread,
    "run_in_executor": by_executor,
    "processes": by_processes,
}

if __name__ == "__main__":
    report(int(sys.argv[2]), KINDS[sys.argv[1]](int(sys.argv[2])))
