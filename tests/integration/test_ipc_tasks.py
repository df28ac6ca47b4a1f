"""Tasks that wait for other processes: the thread that sleeps on their behalf loses no wake-up.

Invariant: no test relies on how long anything takes; a time limit is for what would never happen.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from unsnarl import ipc
from unsnarl.ipc.tasks import _Entry, _Watcher

LIMIT_S = 60

CROWDED = """
import asyncio, os, signal
from unsnarl import ipc

semaphore, taken, gate = ipc.Semaphore(1), ipc.Event(), ipc.Event()
pid = os.fork()
if pid == 0:
    semaphore.acquire()
    taken.set()
    gate.wait()
    os.kill(os.getpid(), signal.SIGKILL)
taken.wait()

async def come_and_go():
    never = ipc.Event()
    while True:
        try:
            await asyncio.wait_for(never.async_wait(), 0.05)
        except TimeoutError:
            pass

async def main():
    others = asyncio.create_task(come_and_go())
    waiter = asyncio.create_task(semaphore.async_acquire())
    await asyncio.sleep(0)  # it waits, and no process is dead yet
    gate.set()
    try:
        await asyncio.wait_for(waiter, 60)
    except ipc.OwnerDied:
        print("told")
    others.cancel()

asyncio.run(main())
os.waitpid(pid, 0)
"""


def test_a_task_looks_for_the_dead_though_others_come_and_go() -> None:
    ran = subprocess.run([sys.executable, "-c", CROWDED], capture_output=True, text=True, timeout=100, check=False)
    assert (ran.returncode, ran.stdout) == (0, "told\n"), ran.stderr


class Slept:
    """A stand-in for a sleep: counts how often its wake-up was passed on."""

    def __init__(self) -> None:
        self.passed_on = 0

    def pass_on(self) -> None:
        self.passed_on += 1


def leaving(entry: _Entry, watcher: _Watcher) -> Any:
    """An event whose task leaves just as it is set."""

    class Leaving:
        def set(self) -> None:
            watcher.remove(entry)

        def is_set(self) -> bool:
            return False

    return Leaving()


@pytest.mark.parametrize("when", ["before", "while", "after"])
def test_a_task_that_leaves_passes_its_wake_up_on_once(when: str) -> None:
    watcher, sleep = _Watcher(), Slept()
    made: Any = sleep
    entry = _Entry(made)
    if when == "while":
        entry.event = leaving(entry, watcher)
    if when == "before":
        watcher.remove(entry)
    watcher._wake([entry])
    if when == "after":
        watcher.remove(entry)
    assert sleep.passed_on == 1


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_tasks_wait_again_once_threads_can_be_had_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        event = ipc.Event()
        with monkeypatch.context() as without:
            without.setattr(threading.Thread, "start", no_thread)
            with pytest.raises(RuntimeError, match="new thread"):
                await event.async_wait()
        waiter = asyncio.create_task(event.async_wait())
        await asyncio.sleep(0)
        event.set()
        assert await asyncio.wait_for(waiter, LIMIT_S)

    asyncio.run(main())
