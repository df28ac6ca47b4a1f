"""The child processes of the scenarios between processes: started, joined and killed.

Invariant: every wait has an end, `TIMEOUT_S`, and a party that reaches it fails.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from unsnarl import ipc

TIMEOUT_S = 180


def started(context: Any, count: int, target: Any, *args: Any) -> list[Any]:
    processes = [context.Process(target=target, args=args, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    return processes


def join(processes: list[Any]) -> None:
    for process in processes:
        process.join(TIMEOUT_S)
        assert process.exitcode == 0, process


def kill(process: Any) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join(TIMEOUT_S)
    assert process.exitcode == -signal.SIGKILL


def told(lock: Any) -> int:
    """Return the id of the process whose death releases the lock to the next waiter."""
    try:
        lock.acquire(timeout=TIMEOUT_S)
    except ipc.OwnerDied as death:
        return death.pid
    raise AssertionError("nobody was told")


def hold(lock: Any, ready: Any) -> None:
    lock.acquire()
    ready.set()
    while True:
        signal.pause()


def hold_side(side: Any, lock: Any, ready: Any) -> None:
    getattr(lock, side).acquire()
    ready.set()
    while True:
        signal.pause()


def meet(barrier: Any, places: Any, rounds: int) -> None:
    for _ in range(rounds):
        places.put(barrier.wait(TIMEOUT_S))


def wait_at(barrier: Any) -> None:
    barrier.wait()


def echo(queue: Any, answers: Any) -> None:
    answers.put(queue.get(timeout=TIMEOUT_S))


Scenario = Callable[[Any], None]


def perform(scenarios: Sequence[Scenario], inheritance: Sequence[str]) -> None:
    """Run the scenarios named on the command line, or all that make sense with the start method."""
    method, *names = sys.argv[1:]
    names = names or ([] if method == "fork" else list(inheritance))
    context = ipc.get_context(method)
    for scenario in scenarios:
        if not names or scenario.__name__ in names:
            print(scenario.__name__, flush=True)
            scenario(context)
    print("ok")
