"""Which task holds a lock, as reported to a caller that would wait for it for ever.

Invariant: as in the scenarios: states and orders are asserted, never times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import unsnarl
from tests.contract.playbook import scenario


def complaint_of(acquire: Callable[[], object]) -> str:
    try:
        acquire()
    except RuntimeError as error:
        return str(error)
    return "no error"


@scenario
async def async_sure_deadlock_raises(world: Any) -> None:
    for make in (unsnarl.Lock, unsnarl.RLock):
        lock = make()
        async with lock:
            complaint = complaint_of(lock.acquire)
            assert "deadlock" in complaint
            assert "held by" in complaint


@scenario
async def async_sure_deadlock_over_a_grant_raises(world: Any) -> None:
    """The lock belongs to the next task from the release on, and not only when that task runs."""
    import_module("asyncio")  # which may be installed and not run
    for make in (unsnarl.Lock, unsnarl.RLock):
        lock = make()
        held, complaints = unsnarl.Event(), list[str]()

        async def take(lock: Any = lock, held: unsnarl.Event = held) -> None:
            await held
            async with lock:
                pass

        async def hand_over(lock: Any = lock, held: unsnarl.Event = held, complaints: list[str] = complaints) -> None:
            async with lock:
                held.set()
                await world.wait_until_idle()
                assert lock.waiting == 1
            complaints.append(complaint_of(lock.acquire))

        await world.together(hand_over, take)
        assert len(complaints) == 1
        assert "held by" in complaints[0]
        assert not lock.locked()


@scenario
async def async_sure_deadlock_behind_a_task_raises(world: Any) -> None:
    """A task of the same loop is ahead in the queue, whichever task holds the lock now."""
    for make in (unsnarl.Lock, unsnarl.RLock):
        lock = make()
        taken, done = threading.Event(), threading.Event()

        def hold(lock: Any = lock, taken: Any = taken, done: Any = done) -> None:
            with lock:
                taken.set()
                done.wait(60)

        async def take(lock: Any = lock) -> None:
            async with lock:
                pass

        async def try_it(lock: Any = lock, done: Any = done) -> None:
            await world.wait_until_idle()
            assert lock.waiting == 1
            complaint = complaint_of(lock.acquire)
            done.set()
            assert "promised first to" in complaint

        holder = threading.Thread(target=hold)
        holder.start()
        assert taken.wait(60)
        await world.together(take, try_it)
        holder.join(60)
        assert not lock.locked()


@scenario
async def async_sure_deadlock_over_a_side_raises(world: Any) -> None:
    for hold, take in (("writer", "writer"), ("writer", "reader"), ("reader", "writer")):
        lock = unsnarl.RWLock()
        async with getattr(lock, hold):
            complaint = complaint_of(getattr(lock, take).acquire)
            assert "deadlock: the lock is held by" in complaint
        with getattr(lock, take):
            assert lock.locked()
        assert not lock.locked()


@scenario
async def async_sure_deadlock_behind_a_task_at_a_side_raises(world: Any) -> None:
    """A reader waits for a writer that arrived before it, not for readers that enter with it."""
    lock = unsnarl.RWLock()
    complaints: list[str] = []
    lock.reader.acquire()

    async def write() -> None:
        async with lock.writer:
            pass

    async def try_it() -> None:
        await world.wait_until_idle()
        assert lock.waiting == 1
        complaints.append(complaint_of(lock.reader.acquire))
        lock.reader.release()

    await world.together(write, try_it)
    assert len(complaints) == 1
    assert "promised first to" in complaints[0]
    assert not lock.locked()


@scenario
async def async_no_deadlock_behind_a_writer_that_may_give_up(world: Any) -> None:
    lock = unsnarl.RWLock()
    outcomes: list[bool] = []
    async with lock.reader:
        thread = threading.Thread(target=lambda: outcomes.append(lock.writer.acquire(timeout=0.05)))
        thread.start()
        while not lock.writer.waiting and not outcomes:
            pass
        assert lock.reader.acquire()
        thread.join(60)
        assert outcomes == [False]
        lock.reader.release()
    assert not lock.locked()


@scenario
async def async_no_deadlock_over_a_side_that_was_changed_or_left(world: Any) -> None:
    lock = unsnarl.RWLock()
    await lock.writer.async_acquire()
    lock.downgrade()
    lock.reader.acquire()
    assert "held by" in complaint_of(lock.writer.acquire)
    lock.reader.release()
    assert lock.try_upgrade()
    lock.writer.release()
    lock.writer.acquire()
    lock.writer.release()
    await lock.reader.async_acquire()
    thread = threading.Thread(target=lock.reader.release)  # any thread may release for a task
    thread.start()
    thread.join(60)
    lock.writer.acquire()
    lock.writer.release()
    assert not lock.locked()


@scenario
async def async_no_deadlock_over_a_side_that_was_left_beside_others(world: Any) -> None:
    """If others read, it is unknown for which task a thread has left."""
    lock = unsnarl.RWLock()
    lock.reader.acquire()
    await lock.reader.async_acquire()
    thread = threading.Thread(target=lock.reader.release)
    thread.start()
    thread.join(60)
    assert not lock.writer.acquire(timeout=0)
    releasing = threading.Timer(0.01, lock.reader.release)
    releasing.start()
    lock.writer.acquire()
    lock.writer.release()
    assert not lock.locked()


@scenario
async def async_sure_deadlock_over_tokens_raises(world: Any) -> None:
    limiter = unsnarl.CapacityLimiter(1)
    async with limiter:
        complaint = complaint_of(limiter.acquire)
        assert "deadlock: every token is held by" in complaint
        limiter.total_tokens = 2
        limiter.acquire()  # for the thread, which is another borrower
        limiter.release()
    assert limiter.borrowed_tokens == 0


@scenario
async def async_no_deadlock_over_tokens_that_a_thread_has_too(world: Any) -> None:
    limiter = unsnarl.CapacityLimiter(2)
    taken, awaited = threading.Event(), threading.Event()

    def hold() -> None:
        with limiter:
            taken.set()
            awaited.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(60)
    async with limiter:
        threading.Thread(target=let_go_when_waited_for, args=(limiter, awaited.set), daemon=True).start()
        limiter.acquire()
        limiter.release()
    holder.join(60)
    assert limiter.borrowed_tokens == 0


def let_go_when_waited_for(lock: Any, let_go: Callable[[], object]) -> None:
    while not lock.waiting:
        pass
    let_go()


@scenario
async def async_no_deadlock_over_a_task_that_is_over(world: Any) -> None:
    """Any thread may release a Lock, so the lock of a task that has ended may still be released."""
    lock = unsnarl.Lock()

    async def take() -> None:
        await lock.async_acquire()

    await world.together(take)
    releaser = threading.Thread(target=let_go_when_waited_for, args=(lock, lock.release), daemon=True)
    releaser.start()
    lock.acquire()
    releaser.join(60)
    lock.release()
    assert not lock.locked()


@scenario
async def async_sure_deadlock_after_a_condition_raises(world: Any) -> None:
    for lock in (unsnarl.Lock(), unsnarl.RLock()):
        condition = unsnarl.Condition(lock)
        complaints: list[str] = []

        async def wait(condition: Any = condition, complaints: list[str] = complaints) -> None:
            async with condition:
                await condition
                complaints.append(complaint_of(condition.acquire))

        async def notify(condition: Any = condition) -> None:
            await world.wait_until_idle()
            async with condition:
                condition.notify()

        await world.together(wait, notify)
        assert len(complaints) == 1
        assert "held by" in complaints[0]
        assert not lock.locked()


@scenario
async def async_condition_over_a_class_of_ones_own(world: Any) -> None:
    class Plain(unsnarl.Lock):
        pass

    class Reentrant(unsnarl.RLock):
        pass

    for lock in (Plain(), Reentrant()):
        condition = unsnarl.Condition(lock)
        notified: list[bool] = []

        async def wait(lock: Any = lock, condition: Any = condition, notified: list[bool] = notified) -> None:
            async with condition:
                depth = 2 if isinstance(lock, Reentrant) and await lock.async_acquire() else 1
                notified.append(await condition)
                for _ in range(depth - 1):
                    lock.async_release()

        async def notify(condition: Any = condition) -> None:
            await world.wait_until_idle()
            async with condition:
                condition.notify_all()

        await world.together(wait, notify)
        assert notified == [True]
        assert not lock.locked()
