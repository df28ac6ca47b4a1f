"""Signals and destructors: they interrupt a wait, and may themselves release, set and put.

Invariant: a signal is sent only when the wait that it interrupts has begun, or may arrive at any point from then on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import unsnarl


@contextmanager
def handling(number: int, handler: Callable[[], object]) -> Iterator[None]:
    """Handle a signal like this inside the block."""
    before = signal.signal(number, lambda *_: handler())
    try:
        yield
    finally:
        signal.signal(number, before)


def shoot() -> None:
    raise KeyboardInterrupt


@contextmanager
def doing(act: Callable[[], object]) -> Iterator[None]:
    """Have another thread do something inside the block."""
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


LONG_S = 60.0
"""A program that takes longer than this hangs."""


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end, "nothing happens"


def taken_by_another(lock: Any) -> Any:
    """Return the lock, which is held by a thread that has ended."""
    with doing(lock.acquire):
        pass
    return lock


def full(queue: Any) -> Any:
    queue.put(0)
    return queue


WAITS: dict[str, Callable[[], tuple[Any, Callable[[], object]]]] = {
    "Lock": lambda: (lock := taken_by_another(unsnarl.Lock()), lock.acquire),
    "RLock": lambda: (lock := taken_by_another(unsnarl.RLock()), lock.acquire),
    "RWLock": lambda: (lock := unsnarl.RWLock(), taken_by_another(lock.writer).acquire),
    "Semaphore": lambda: (semaphore := unsnarl.Semaphore(0), semaphore.acquire),
    "CapacityLimiter": lambda: (limiter := unsnarl.CapacityLimiter(0), limiter.acquire),
    "Event": lambda: (event := unsnarl.Event(), event.wait),
    "CountdownEvent": lambda: (event := unsnarl.CountdownEvent(1), event.wait),
    "Latch": lambda: (latch := unsnarl.Latch(1), latch.wait),
    "Barrier": lambda: (barrier := unsnarl.Barrier(2), barrier.wait),
    "SimpleQueue.get": lambda: (queue := unsnarl.SimpleQueue[int](), queue.get),
    "PriorityQueue.get": lambda: (queue := unsnarl.PriorityQueue[int](), queue.get),
    "Queue.put": lambda: (queue := full(unsnarl.Queue[int](1)), lambda: queue.put(1)),
    "PriorityQueue.put": lambda: (queue := full(unsnarl.PriorityQueue[int](1)), lambda: queue.put(1)),
    "Queue.join": lambda: (queue := full(unsnarl.Queue[int]()), queue.join),
}


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_interrupts_a_blocked_main_thread(name: str) -> None:
    thing, wait = WAITS[name]()
    main = threading.get_ident()

    def interrupt() -> None:
        until(lambda: thing.waiting)
        signal.pthread_kill(main, signal.SIGINT)

    with handling(signal.SIGINT, shoot), doing(interrupt), pytest.raises(KeyboardInterrupt):
        wait()
    assert thing.waiting == 0


@pytest.mark.parametrize("make", [unsnarl.Lock, unsnarl.RLock])
def test_a_second_ctrl_c_does_not_take_the_lock_of_a_condition_away(make: Callable[[], Any]) -> None:
    """The first signal arrives during the wait, the second while the lock is acquired again."""
    condition, main, heard = unsnarl.Condition(make()), threading.get_ident(), threading.Semaphore(0)

    def hear() -> None:
        heard.release()
        shoot()

    def interrupt_twice() -> None:
        until(lambda: condition.waiting)
        with condition:
            signal.pthread_kill(main, signal.SIGINT)
            assert heard.acquire(timeout=LONG_S)
            until(lambda: condition.lock.waiting)
            signal.pthread_kill(main, signal.SIGINT)
            assert heard.acquire(timeout=LONG_S)

    with handling(signal.SIGINT, hear), doing(interrupt_twice):
        with condition:
            with pytest.raises(KeyboardInterrupt):
                condition.wait()
            assert condition.locked()
        assert not condition.locked()


def test_an_interrupted_party_leaves_a_barrier_and_may_come_back() -> None:
    """As a waiter of the standard library's, where a signal may also hit the lines around the wait."""
    barrier, main = unsnarl.Barrier(3), threading.get_ident()
    indices: list[int] = []

    def join() -> None:
        indices.append(barrier.wait(LONG_S))

    def interrupt_and_join() -> None:
        until(lambda: barrier.n_waiting == 2)
        signal.pthread_kill(main, signal.SIGUSR1)
        assert left.acquire(timeout=LONG_S)
        until(lambda: barrier.n_waiting == 2)
        join()

    left = threading.Semaphore(0)
    with handling(signal.SIGUSR1, shoot), doing(join):
        until(lambda: barrier.n_waiting == 1)
        with doing(interrupt_and_join):
            with pytest.raises(KeyboardInterrupt):
                barrier.wait(LONG_S)
            assert (barrier.broken, barrier.n_waiting) == (False, 1)
            left.release()
            join()
    assert sorted(indices) == [0, 1, 2]


def test_a_cancelled_party_leaves_a_barrier() -> None:
    async def main() -> None:
        barrier = unsnarl.Barrier(2)
        cancelled = asyncio.ensure_future(barrier.async_wait())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert (barrier.broken, barrier.n_waiting) == (False, 0)
        assert sorted(await asyncio.gather(barrier.async_wait(), barrier.async_wait())) == [0, 1]

    asyncio.run(main())


HANDLED: dict[str, Callable[[], tuple[Any, Callable[[], object], Callable[[], object]]]] = {
    "Lock": lambda: (lock := taken_by_another(unsnarl.Lock()), lock.release, lock.acquire),
    "Semaphore": lambda: (semaphore := unsnarl.Semaphore(0), semaphore.release, semaphore.acquire),
    "Event": lambda: (event := unsnarl.Event(), event.set, event.wait),
    "Latch": lambda: (latch := unsnarl.Latch(1), latch.count_down, latch.wait),
    "Queue": lambda: (queue := unsnarl.Queue[int](), lambda: queue.put(1), queue.get),
    "Queue, full": lambda: (queue := full(unsnarl.Queue[int](1)), queue.get, lambda: queue.put(1)),
    "SimpleQueue": lambda: (queue := unsnarl.SimpleQueue[int](), lambda: queue.put(1), queue.get),
    "PriorityQueue": lambda: (queue := unsnarl.PriorityQueue[int](), lambda: queue.put(1), queue.get),
}


@pytest.mark.parametrize("name", HANDLED)
def test_a_signal_handler_serves_the_wait_that_it_interrupts(name: str) -> None:
    thing, serve, wait = HANDLED[name]()

    def send() -> None:
        until(lambda: thing.waiting)
        os.kill(os.getpid(), signal.SIGUSR1)

    with handling(signal.SIGUSR1, serve), doing(send):
        wait()
    assert thing.waiting == 0


@pytest.mark.parametrize("name", HANDLED)
def test_a_destructor_may_serve_a_thread_that_waits(name: str) -> None:
    thing, serve, wait = HANDLED[name]()

    class Ending:
        def __del__(self) -> None:
            serve()

    with doing(wait):
        until(lambda: thing.waiting)
        Ending()
    assert thing.waiting == 0


@pytest.mark.parametrize("make", [unsnarl.Queue, unsnarl.LifoQueue, unsnarl.PriorityQueue, unsnarl.SimpleQueue])
@pytest.mark.parametrize("drop", ["clear", "get_nowait"])
def test_an_item_may_put_another_when_it_ends(make: Callable[[], Any], drop: str) -> None:
    class Ending:
        def __del__(self) -> None:
            queue.put(1)

    queue = make()
    queue.put(Ending())
    getattr(queue, drop)()
    assert queue.get_nowait() == 1


def test_a_handler_that_puts_and_waits_for_another_is_served() -> None:
    """The interrupted wait is first in the queue, but does not re-check before the handler has ended."""
    queue, served, answers = unsnarl.Queue[int](), threading.Event(), list[bool]()

    def work() -> None:
        until(lambda: queue.waiting == 1)
        queue.get(timeout=LONG_S)
        served.set()

    def send() -> None:
        until(lambda: queue.waiting == 2)
        os.kill(os.getpid(), signal.SIGUSR1)

    def put_two() -> None:
        queue.put(1)
        queue.put(2)
        answers.append(served.wait(LONG_S))

    with handling(signal.SIGUSR1, put_two), doing(work), doing(send):
        queue.get(timeout=LONG_S)
    assert answers == [True]


@contextmanager
def handling_while_it_waits(queue: Any, act: Callable[[], object]) -> Iterator[None]:
    """While only the main thread waits at a queue, run a handler there that lasts until ``act`` has ended."""
    acted, began = threading.Event(), threading.Event()

    def handle() -> None:
        began.set()
        assert acted.wait(LONG_S), "what others do waits for the handler"

    def send_and_act() -> None:
        until(lambda: queue.waiting == 1)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert began.wait(LONG_S)
        act()
        acted.set()

    with handling(signal.SIGUSR1, handle), doing(send_and_act):
        yield


def test_items_are_for_others_while_the_first_in_line_runs_a_handler() -> None:
    queue = unsnarl.Queue[int]()

    def act() -> None:
        with doing(lambda: queue.get(timeout=LONG_S)):
            until(lambda: queue.waiting == 2)
            queue.put(1)
            queue.put(2)

    with handling_while_it_waits(queue, act):
        assert queue.get(timeout=LONG_S) in (1, 2)


def test_a_wait_for_room_does_not_depend_on_a_handler_in_a_wait_for_items() -> None:
    queue = unsnarl.Queue[int](1)

    def act() -> None:
        queue.put(1)
        with doing(lambda: queue.put(2, timeout=LONG_S)):
            until(lambda: queue.waiting == 2)
            assert queue.get(timeout=LONG_S) == 1

    with handling_while_it_waits(queue, act):
        assert queue.get(timeout=LONG_S) == 2


def test_a_waiter_that_runs_a_handler_while_it_waits_for_the_mutex_is_not_relied_on() -> None:
    inside, may_end, served = threading.Event(), threading.Event(), threading.Event()

    class Slow(unsnarl.Queue[int]):
        def _put(self, item: int) -> None:
            super()._put(item)
            if item == 2:
                inside.set()
                assert may_end.wait(LONG_S)

    queue, answers, main = Slow(), list[bool](), threading.get_ident()

    def get() -> None:
        until(lambda: queue.waiting == 1)
        queue.get(timeout=LONG_S)
        served.set()

    def put() -> None:
        until(lambda: queue.waiting == 2)
        queue.put(1)
        queue.put(2)

    def send() -> None:
        assert inside.wait(LONG_S)
        until(lambda: queue.mutex.waiting)
        signal.pthread_kill(main, signal.SIGUSR1)

    def handle() -> None:
        may_end.set()
        answers.append(served.wait(LONG_S))

    with handling(signal.SIGUSR1, handle), doing(get), doing(put), doing(send):
        queue.get(timeout=LONG_S)
    assert answers == [True]


def test_to_tell_a_task_of_another_thread_runs_none_of_its_loops_code() -> None:
    """A signal handler could run there, and last, and every party notified after that task would wait for it."""
    semaphore, served, calls = unsnarl.Semaphore(0), threading.Event(), list[int]()

    class Loop(asyncio.SelectorEventLoop):
        def is_closed(self) -> bool:
            calls.append(threading.get_ident())
            return super().is_closed()

    async def take() -> None:
        await semaphore.async_acquire()
        served.set()

    def run() -> None:
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(take())

    with doing(run):
        until(lambda: semaphore.waiting)
        semaphore.release()
        assert served.wait(LONG_S)
    assert calls
    assert threading.get_ident() not in calls
