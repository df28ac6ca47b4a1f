"""Number of futex wake-ups per hand-off between two processes.

    python -m bench.ipc.wakes SCENE LIBRARY ROUNDS

plays one scene; `count` traces it. In a hand-off one process lets the other continue, so a round trip has two. Both run
on one processor, where no wait ends by spinning. Tracing stops a process at each call, which lets the other run. So
fewer waits sleep than without tracing, and a figure below 1 means that not every hand-off needed a wake-up. Wake-ups
between threads of one process, as in multiprocessing's queue, count too.
Invariant: the wake-ups of the processes' start and end are subtracted, as the count of a run without rounds.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.machine import ROOT
from unsnarl import ipc

ROUNDS = 1000
HAND_OFFS = 2
"""Per round trip."""
WAKE = re.compile(r"\bfutex\([^,]+, FUTEX_WAKE")


def _by_semaphore(context: Any, rounds: int) -> tuple[Any, Any]:
    here, there = context.Semaphore(1), context.Semaphore(0)

    def play(mine: Any, theirs: Any) -> None:
        for _ in range(rounds):
            mine.acquire()
            theirs.release()

    return (lambda: play(here, there)), (lambda: play(there, here))


def _by_queue(context: Any, rounds: int) -> tuple[Any, Any]:
    here, there = context.Queue(), context.Queue()
    here.put(0)

    def play(mine: Any, theirs: Any) -> None:
        for _ in range(rounds):
            theirs.put(mine.get())

    return (lambda: play(here, there)), (lambda: play(there, here))


def _by_condition(context: Any, rounds: int) -> tuple[Any, Any]:
    condition, turn = context.Condition(context.Lock()), context.RawValue("b", 0)

    def play(mine: int) -> None:
        for _ in range(rounds):
            with condition:
                while turn.value != mine:
                    condition.wait()
                turn.value = 1 - mine
                condition.notify()

    return (lambda: play(0)), (lambda: play(1))


SCENES = {"Semaphore": _by_semaphore, "Queue": _by_queue, "Condition": _by_condition}
LIBRARIES: dict[str, Any] = {"multiprocessing": multiprocessing.get_context, "unsnarl": ipc.get_context}


def count(scene: str, library: str) -> float:
    """Return the futex wake-ups per hand-off.

    Raises subprocess.CalledProcessError where strace may not trace.
    """
    without, played = (_wakes(scene, library, rounds) for rounds in (0, ROUNDS))
    return (played - without) / (ROUNDS * HAND_OFFS)


def _wakes(scene: str, library: str, rounds: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        calls = Path(directory, "calls")
        traced = ["strace", "-f", "-qq", "-e", "trace=futex", "-o", str(calls)]
        command = [*traced, sys.executable, "-m", "bench.ipc.wakes", scene, library, str(rounds)]
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
        return len(WAKE.findall(calls.read_text()))


def main() -> None:
    """Play one scene."""
    scene, library, rounds = sys.argv[1:]
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    context: Any = LIBRARIES[library]("fork")
    processes = [context.Process(target=play) for play in SCENES[scene](context, int(rounds))]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
