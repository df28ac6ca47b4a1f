"""The primitives with threads that run in parallel: promises that a GIL keeps by itself must hold without one too.

Each test is short, and passes on an interpreter with a GIL as well; without a GIL it hits, a few thousand times, the
moment between two steps that a GIL makes one step.

Invariant: no thread is waited for without a timeout, and none is left behind.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import unsnarl

HANGS_AFTER_S = 200.0
TURNS = 2_000

has_gil = getattr(sys, "_is_gil_enabled", lambda: True)
without_gil = pytest.mark.skipif(has_gil(), reason="this interpreter has a GIL")


def at_once(*parts: Callable[[], None]) -> None:
    """Run the parts in threads that start together; raise the first exception."""
    start = threading.Barrier(len(parts))
    errors: list[BaseException] = []

    def run(part: Callable[[], None]) -> None:
        try:
            start.wait(HANGS_AFTER_S)
            part()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(part,), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_AFTER_S)
        if thread.is_alive():
            faulthandler.dump_traceback(all_threads=True)
            pytest.fail("a thread hangs")
    if errors:
        raise errors[0]


def test_an_event_that_is_set_once_is_passed_once() -> None:
    event, passed = unsnarl.Event(), unsnarl.Semaphore(0)
    passes: list[int] = []

    def passer() -> None:
        for turn in range(TURNS):
            assert event.wait(HANGS_AFTER_S)
            event.clear()
            passes.append(turn)
            passed.release()

    def setter() -> None:
        for turn in range(TURNS):
            event.set()
            assert passed.acquire(timeout=HANGS_AFTER_S)
            assert len(passes) == turn + 1

    at_once(passer, setter)


def test_a_countdown_is_set_exactly_while_it_is_zero() -> None:
    countdown = unsnarl.CountdownEvent()

    def up_and_down() -> None:
        for _ in range(TURNS):
            countdown.up()
            assert not countdown.is_set()
            countdown.down()

    at_once(*[up_and_down] * 4)
    assert countdown.value == 0
    assert countdown.is_set()


def test_a_lock_that_is_released_too_often_is_held_by_one() -> None:
    lock = unsnarl.Lock()

    def release() -> None:
        for _ in range(TURNS):
            lock.acquire(blocking=False)
            try:
                lock.release()
            except RuntimeError:
                continue

    at_once(*[release] * 4)
    assert lock.acquire(blocking=False)
    assert not lock.acquire(blocking=False)


def test_a_notification_that_meets_a_timeout_keeps_no_lock() -> None:
    condition = unsnarl.Condition(unsnarl.Lock())
    is_over = threading.Event()

    def waiter() -> None:
        for _ in range(TURNS):
            with condition:
                condition.wait(timeout=0.00002)
        is_over.set()

    def notifier() -> None:
        while not is_over.is_set():
            with condition:
                condition.notify(2)

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(
        1e-4
    )  # with the usual interval, each wait takes 5 ms to get the GIL back from the notifying thread
    try:
        at_once(waiter, notifier)
    finally:
        sys.setswitchinterval(interval_s)
    assert condition.waiting == 0
    assert condition.acquire(timeout=HANGS_AFTER_S)


@pytest.mark.parametrize("make", [unsnarl.Queue, unsnarl.LifoQueue, unsnarl.SimpleQueue])
def test_a_queue_is_opened_up_under_load(make: Callable[[], Any]) -> None:
    """One thread reads `mutex` for the first time while others put and get."""
    for _ in range(40):
        queue = make()
        given = [range(start, start + 50) for start in (0, 1000)]
        taken: list[list[int]] = [[], []]

        def put(numbers: range, queue: Any = queue) -> None:
            for number in numbers:
                queue.put(number)

        def get(numbers: list[int], queue: Any = queue) -> None:
            numbers.extend(queue.get(timeout=HANGS_AFTER_S) for _ in range(50))

        def open_up(queue: Any = queue) -> None:
            with queue.mutex:
                assert len(queue.queue) <= 100

        at_once(
            *[lambda numbers=numbers: put(numbers) for numbers in given],
            *[lambda numbers=numbers: get(numbers) for numbers in taken],
            open_up,
            open_up,
        )
        assert Counter(taken[0] + taken[1]) == Counter([*given[0], *given[1]])
        assert queue.empty()


@without_gil
def test_the_gil_stays_off() -> None:
    program = """
import asyncio, sys, unsnarl, unsnarl.gil, unsnarl.ipc
from unsnarl import patching
queue, lock, event = unsnarl.PriorityQueue(2), unsnarl.RLock(), unsnarl.Event()
async def use():
    async with lock:
        await queue.async_put(1)
    event.set()
    return await queue.async_get(), await event
assert asyncio.run(use()) == (1, True)
unsnarl.patch()
assert not sys._is_gil_enabled()
try:
    unsnarl.gil.install()
except unsnarl.UnsupportedInterpreter as error:
    print(error)
"""
    # CPython warns about a module that switches the GIL on; here the warning is an error.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "it has no GIL to schedule" in done.stdout


@without_gil
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_finds_no_primitive_half_way() -> None:
    """CPython stops the world for a fork, and no thread stops within a primitive."""
    lock, queue, semaphore = unsnarl.Lock(), unsnarl.Queue[int](10), unsnarl.Semaphore(2)
    is_over = threading.Event()

    def use() -> None:
        while not is_over.is_set():
            with lock, semaphore:
                queue.put(1)
            queue.get()

    def fork() -> None:
        try:
            for _ in range(50):
                child = os.fork()
                if child == 0:
                    lock._at_fork_reinit()
                    works = lock.acquire(timeout=0) and queue.qsize() <= 10 and semaphore.value <= 2
                    os._exit(0 if works else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            is_over.set()

    at_once(use, use, use, fork)
