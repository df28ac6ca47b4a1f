"""Parties that leave, or are woken, at unusual moments.

Programs that once hung run in a process of their own, under the watchdog.
"""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

import unsnarl
from tests.conftest import Programs
from tests.unit.libraries import library

CLOSED_OUTSIDE_OF_A_TASK = """
import asyncio, unsnarl

condition = unsnarl.Condition({lock})

async def wait():
    async with condition:
        await condition.async_wait()

loop = asyncio.new_event_loop()
task = loop.create_task(wait())
while not condition.waiting:
    loop.run_until_complete(asyncio.sleep(0))
try:
    task.get_coro().close()
except RuntimeError as error:
    print(error)
task._log_destroy_pending = False
loop.close()
print("over", condition.waiting)
"""


@pytest.mark.parametrize("lock", ["", "unsnarl.Lock()", "unsnarl.Semaphore(1)"])
def test_a_coroutine_that_waits_in_a_condition_may_be_closed_outside_of_a_task(programs: Programs, lock: str) -> None:
    program = programs.write("closed.py", CLOSED_OUTSIDE_OF_A_TASK.format(lock=lock))
    outcome = programs.python(program)
    assert outcome.status == 0, outcome.complaint
    assert outcome.stdout.endswith(b"over 0\n")


FOREIGN_LOCK = """
import asyncio, threading, unsnarl

async def main():
    condition = unsnarl.Condition(threading.Lock())
    condition.acquire()
    try:
        await condition.async_wait()
    except TypeError as error:
        print(error, condition.lock.locked())

asyncio.run(main())
"""


def test_a_lock_that_no_task_can_acquire_again_is_not_released(programs: Programs) -> None:
    outcome = programs.python(programs.write("foreign.py", FOREIGN_LOCK))
    assert outcome.status == 0, outcome.complaint
    assert b"async_acquire" in outcome.stdout
    assert outcome.stdout.endswith(b" True\n")


INTERRUPTED_SLEEP = """
import asyncio, selectors, signal, unsnarl

class Selector(selectors.DefaultSelector):
    # The handler runs when the loop has decided to sleep, as in a sleep that a signal interrupts.
    is_armed = True

    def select(self, timeout=None):
        if timeout is None and self.is_armed:
            self.is_armed = False
            signal.raise_signal(signal.SIGUSR1)
        return super().select(timeout)

async def main():
    event = unsnarl.Event()
    signal.signal(signal.SIGUSR1, lambda *_: event.set())
    return await event.async_wait()

with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Selector())) as runner:
    print(runner.run(main()))
"""


def test_a_signal_handler_wakes_a_task_of_the_loop_that_it_interrupts(programs: Programs) -> None:
    outcome = programs.python(programs.write("interrupted.py", INTERRUPTED_SLEEP))
    assert (outcome.status, outcome.stdout) == (0, b"True\n"), outcome.complaint


def test_one_future_that_fails_keeps_no_other_task_waiting() -> None:
    class Stubborn(asyncio.Future[None]):
        def set_result(self, _result: None) -> None:
            raise ValueError("stubborn")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        complaints: list[str] = []
        loop.set_exception_handler(lambda _loop, context: complaints.append(str(context["exception"])))
        semaphore = unsnarl.Semaphore(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "create_future", lambda: Stubborn(loop=loop))
            first = asyncio.ensure_future(semaphore.async_acquire())
            await asyncio.sleep(0)
        second = asyncio.ensure_future(semaphore.async_acquire())
        await asyncio.sleep(0)
        thread = threading.Thread(target=semaphore.release, args=(2,))
        thread.start()
        thread.join()
        assert await asyncio.wait_for(second, 30)
        assert complaints == ["stubborn"]
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert semaphore.value == 1

    asyncio.run(main())


KILLED_DURING_THE_ACTION = """
import gevent, unsnarl

barrier = unsnarl.Barrier(2, action=lambda: first.kill())
first = gevent.spawn(barrier.wait)
while not barrier.n_waiting:
    gevent.sleep(0)
print(gevent.spawn(barrier.wait).get(), first.dead)
"""


@library("gevent")
def test_a_greenlet_that_is_killed_leaves_its_thread_to_the_action(programs: Programs) -> None:
    outcome = programs.python(programs.write("killed.py", KILLED_DURING_THE_ACTION))
    assert (outcome.status, outcome.stdout) == (0, b"1 True\n"), outcome.complaint


def test_a_task_that_is_cancelled_leaves_its_loop_to_the_action() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def act() -> None:
            loop.call_soon_threadsafe(first.cancel)
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(30)

        barrier = unsnarl.Barrier(2, action=act)
        first = asyncio.ensure_future(barrier.async_wait())
        await asyncio.sleep(0)
        assert await asyncio.to_thread(barrier.wait) == 1
        await asyncio.gather(first, return_exceptions=True)
        assert first.cancelled()

    asyncio.run(main())


def test_ctrl_c_also_interrupts_a_thread_that_waits_for_the_action() -> None:
    main, heard = threading.get_ident(), [threading.Event(), threading.Event()]
    was_heard: list[bool] = []

    def act() -> None:
        for event in heard:
            signal.pthread_kill(main, signal.SIGINT)
            was_heard.append(event.wait(30))

    def shoot(_number: int, _frame: object) -> None:
        next(event for event in heard if not event.is_set()).set()
        raise KeyboardInterrupt

    barrier = unsnarl.Barrier(2, action=act)

    def follow() -> None:
        while not barrier.n_waiting:
            pass
        barrier.wait()

    thread = threading.Thread(target=follow)
    before = signal.signal(signal.SIGINT, shoot)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            barrier.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert was_heard == [True, True]


def test_a_task_without_time_arrives_at_a_barrier() -> None:
    async def main() -> None:
        barrier = unsnarl.Barrier(2)
        first = asyncio.ensure_future(barrier.async_wait())
        await asyncio.sleep(0)
        assert await barrier.async_wait(timeout=0) == 1
        assert await first == 0
        with pytest.raises(threading.BrokenBarrierError):
            await barrier.async_wait(timeout=0)
        assert barrier.broken

    asyncio.run(main())
