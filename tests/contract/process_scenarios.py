"""The promises of the primitives between processes, as scenarios with real processes.

    python -m tests.contract.process_scenarios METHOD [NAME]...

Each scenario runs with children by the given start method. Where no child has to be killed, the
context starts them; otherwise the scenario uses fork and signals. Invariant: nothing sleeps to synchronise,
and every wait has an end (`TIMEOUT_S`) that fails the scenario.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.contract.crew import (
    TIMEOUT_S,
    echo,
    hold,
    hold_side,
    join,
    kill,
    meet,
    perform,
    started,
    told,
    wait_at,
)
from unsnarl import ShutDown, ipc


def _count(lock: Any, value: Any, times: int) -> None:
    for _ in range(times):
        with lock:
            value.value += 1


def lock_excludes(context: Any) -> None:
    for lock in (context.Lock(), context.RLock(), context.BoundedSemaphore(1), context.Condition()):
        value = context.RawValue("i")
        join(started(context, 3, _count, lock, value, 500))
        assert value.value == 1500, (lock, value)


def holder_is_killed(context: Any) -> None:
    for lock in (context.Lock(), context.RLock()):
        ready = context.Event()
        (process,) = started(context, 1, hold, lock, ready)
        assert ready.wait(TIMEOUT_S)
        assert lock.statistics()["holder"] == process.pid
        assert not lock.acquire(timeout=0.05)
        kill(process)
        assert told(lock) == process.pid
        assert lock.locked()
        lock.make_consistent()
        lock.release()
        with lock:
            assert lock.statistics()["owner_died"] is False


def _wait_for(lock: Any, told: Any) -> None:
    try:
        lock.acquire(timeout=TIMEOUT_S)
    except ipc.OwnerDied:
        lock.make_consistent()
        told.release()
    lock.release()


def waiters_are_told_once(context: Any) -> None:
    lock, ready, told = context.Lock(), context.Event(), context.Semaphore(0)
    (holder,) = started(context, 1, hold, lock, ready)
    assert ready.wait(TIMEOUT_S)
    waiters = started(context, 3, _wait_for, lock, told)
    while not lock.statistics()["waiting"]:
        os.sched_yield()
    kill(holder)
    join(waiters)
    assert told.value == 1


def unrepaired_is_told_again(context: Any) -> None:
    lock, ready = context.Lock(), context.Event()
    (process,) = started(context, 1, hold, lock, ready)
    assert ready.wait(TIMEOUT_S)
    kill(process)
    for _ in range(2):
        try:
            with lock:
                raise AssertionError("with ran its block")
        except ipc.OwnerDied:
            assert not lock.locked()
    try:
        lock.acquire()
    except ipc.OwnerDied:
        lock.make_consistent()
    lock.release()
    assert lock.acquire(False)
    lock.release()


def stopped_holder_lets_time_pass(context: Any) -> None:
    lock, ready = context.Lock(), context.Event()
    (process,) = started(context, 1, hold, lock, ready)
    assert ready.wait(TIMEOUT_S)
    os.kill(process.pid, signal.SIGSTOP)
    assert lock.acquire(timeout=0.05) is False
    os.kill(process.pid, signal.SIGCONT)
    kill(process)


def _take_and_stay(semaphore: Any, ready: Any) -> None:
    semaphore.acquire()
    semaphore.acquire()
    ready.set()
    while True:
        signal.pause()


def semaphore_is_repaired(context: Any) -> None:
    for semaphore in (context.Semaphore(2), context.BoundedSemaphore(2)):
        ready = context.Event()
        (process,) = started(context, 1, _take_and_stay, semaphore, ready)
        assert ready.wait(TIMEOUT_S)
        kill(process)
        assert semaphore.statistics()["lost"] == 2
        assert told(semaphore) == process.pid
        assert semaphore.make_consistent() == 2
        assert semaphore.value == 2
        assert semaphore.make_consistent() == 0


def _take_one(semaphore: Any) -> None:
    semaphore.acquire()


def permits_pass_between_processes(context: Any) -> None:
    semaphore, ready = context.Semaphore(1), context.Event()
    join(started(context, 1, _take_one, semaphore))
    semaphore.release()
    # The second time, the process holds what it takes: the permit that it gave back earlier makes no difference.
    semaphore.acquire()
    assert not semaphore.acquire(timeout=0.05)
    semaphore.release()
    (process,) = started(context, 1, hold, semaphore, ready)
    assert ready.wait(TIMEOUT_S)
    assert not semaphore.acquire(timeout=0.05)
    assert (semaphore.statistics()["lost"], semaphore.make_consistent(), semaphore.value) == (0, 0, 0)
    kill(process)
    assert not semaphore.acquire(timeout=0.05)
    assert (semaphore.statistics()["lost"], semaphore.make_consistent(), semaphore.value) == (1, 1, 1)


def producers_that_end_owe_nothing(context: Any) -> None:
    slots = context.BoundedSemaphore(1)
    for _ in range(2):
        join(started(context, 1, _take_one, slots))
        slots.release()
    join(started(context, 1, _take_one, slots))
    assert not slots.acquire(timeout=0.05)
    slots.release()


def barrier_meets(context: Any) -> None:
    barrier, places = context.Barrier(3), context.Queue()
    processes = started(context, 3, meet, barrier, places, 5)
    got = sorted(places.get(timeout=TIMEOUT_S) for _ in range(15))
    join(processes)
    assert got == [0] * 5 + [1] * 5 + [2] * 5


def barrier_breaks(context: Any) -> None:
    from threading import BrokenBarrierError

    barrier = context.Barrier(3)
    (process,) = started(context, 1, wait_at, barrier)
    while barrier.n_waiting != 1:
        os.sched_yield()
    kill(process)
    try:
        barrier.wait(TIMEOUT_S)
    except BrokenBarrierError:
        pass
    else:
        raise AssertionError("met the dead")
    assert barrier.statistics()["dead"] == process.pid
    barrier.reset()
    assert not barrier.broken
    assert barrier.statistics()["dead"] is None


def _wait_event(event: Any, done: Any) -> None:
    assert event.wait(TIMEOUT_S)
    done.release()


def event_releases_all(context: Any) -> None:
    event, done = context.Event(), context.Semaphore(0)
    processes = started(context, 3, _wait_event, event, done)
    event.set()
    join(processes)
    assert done.value == 3
    event.clear()
    assert not event.wait(0.01)


def _wait_notified(condition: Any, waiting: Any, done: Any) -> None:
    with condition:
        waiting.release()
        assert condition.wait(TIMEOUT_S)
    done.release()


def condition_notifies(context: Any) -> None:
    condition, waiting, done = context.Condition(), context.Semaphore(0), context.Semaphore(0)
    processes = started(context, 3, _wait_notified, condition, waiting, done)
    for _ in range(3):
        waiting.acquire(timeout=TIMEOUT_S)
    with condition:
        assert condition.waiting == 3
        condition.notify()
    assert done.acquire(timeout=TIMEOUT_S)
    with condition:
        assert condition.waiting == 2
        condition.notify_all()
    join(processes)
    assert done.value == 2


def dead_waiter_is_not_notified(context: Any) -> None:
    condition, waiting, done = context.Condition(), context.Semaphore(0), context.Semaphore(0)
    (first,) = started(context, 1, _wait_notified, condition, waiting, done)
    assert waiting.acquire(timeout=TIMEOUT_S)
    with condition:
        assert condition.waiting == 1
    (second,) = started(context, 1, _wait_notified, condition, waiting, done)
    assert waiting.acquire(timeout=TIMEOUT_S)
    kill(first)
    with condition:
        condition.notify()
    join([second])


def _produce(queue: Any, count: int) -> None:
    for number in range(count):
        queue.put((os.getpid(), number, b"x" * (number % 50)))


def queue_keeps_all(context: Any) -> None:
    for queue in (context.Queue(), context.Queue(5), context.JoinableQueue(), context.SimpleQueue()):
        processes = started(context, 3, _produce, queue, 200)
        last: dict[int, int] = {}
        for _ in range(600):
            pid, number, filling = queue.get()
            assert len(filling) == number % 50
            assert number == last.get(pid, -1) + 1
            last[pid] = number
        join(processes)
        assert queue.empty()


def queues_are_inherited(context: Any) -> None:
    queue, answers = ipc.Queue(4), ipc.Queue(capacity=4096)
    processes = started(context, 1, echo, queue, answers)
    queue.put({"a": [1, 2]})
    assert answers.get(timeout=TIMEOUT_S) == {"a": [1, 2]}
    join(processes)


def queue_takes_long_items(context: Any) -> None:
    queue = context.Queue()
    item = os.urandom(1000) * 80_000  # longer than the queue
    queue.put(item)
    assert queue.get(timeout=TIMEOUT_S) == item
    for _ in range(3):
        queue.put(item[: 40 << 20])  # together longer: the third one goes through the feeder
    for _ in range(3):
        assert len(queue.get(timeout=TIMEOUT_S)) == 40 << 20
    queue.close()
    queue.join_thread()


def _get_until_shut(queue: Any, done: Any) -> None:
    try:
        while True:
            queue.get(timeout=TIMEOUT_S)
    except ShutDown:
        done.release()


def shutdown_ends_every_wait(context: Any) -> None:
    """The woken getter takes the only item; it and the other getters learn that there will be no more."""
    queue, done = ipc.Queue(), context.Semaphore(0)
    processes = started(context, 3, _get_until_shut, queue, done)
    queue.put(1)
    queue.shutdown()
    for _ in processes:
        assert done.acquire(timeout=TIMEOUT_S)
    join(processes)


def _work(queue: Any) -> None:
    while queue.get() is not None:
        queue.task_done()
    queue.task_done()


def joinable_queue_joins(context: Any) -> None:
    queue = context.JoinableQueue()
    processes = started(context, 2, _work, queue)
    for number in range(50):
        queue.put(number)
    assert queue.join(TIMEOUT_S)
    for _ in processes:
        queue.put(None)
    join(processes)


def _read(lock: Any, inside: Any) -> None:
    with lock.reader:
        inside.wait(TIMEOUT_S)


def readers_share(context: Any) -> None:
    lock, inside = ipc.RWLock(), context.Barrier(3)
    processes = started(context, 2, _read, lock, inside)
    with lock.reader:
        inside.wait(TIMEOUT_S)
    join(processes)
    assert lock.writer.acquire(timeout=TIMEOUT_S)
    assert not lock.reader.acquire(False)
    lock.downgrade()
    assert lock.readers == 1
    lock.reader.release()


def reader_is_upgraded(context: Any) -> None:
    lock, ready = ipc.RWLock(), context.Event()
    try:
        lock.try_upgrade()
    except RuntimeError:
        pass
    else:
        raise AssertionError("upgraded a lock that is not held")
    (process,) = started(context, 1, hold_side, "reader", lock, ready)
    assert ready.wait(TIMEOUT_S)
    lock.reader.acquire()
    assert lock.try_upgrade() is False
    assert lock.readers == 2
    kill(process)
    assert lock.try_upgrade() is True
    assert lock.readers == 0
    assert not lock.reader.acquire(False)
    lock.downgrade()
    assert lock.readers == 1
    lock.reader.release()
    assert not lock.locked()


def dead_reader_is_forgotten(context: Any) -> None:
    lock, ready = ipc.RWLock(), context.Event()
    (process,) = started(context, 1, hold_side, "reader", lock, ready)
    assert ready.wait(TIMEOUT_S)
    assert not lock.writer.acquire(timeout=0.05)
    kill(process)
    assert lock.writer.acquire(timeout=TIMEOUT_S)
    lock.writer.release()


def dead_writer_is_told(context: Any) -> None:
    lock, ready = ipc.RWLock(), context.Event()
    (process,) = started(context, 1, hold_side, "writer", lock, ready)
    assert ready.wait(TIMEOUT_S)
    kill(process)
    for side in (lock.reader, lock.writer):
        assert told(side) == process.pid
    lock.make_consistent()
    lock.writer.release()
    with lock.reader:
        assert lock.readers == 1


def _square(number: int) -> int:
    return number * number


def pool_works(context: Any) -> None:
    with context.Pool(2) as pool:
        assert pool.map(_square, range(20)) == [number * number for number in range(20)]


def gate_opens(context: Any) -> None:
    met = context.Barrier(4)
    processes = [context.Process(target=wait_at, args=(met,)) for _ in range(3)]
    ipc.start_together(processes)
    met.wait(TIMEOUT_S)
    join(processes)


def _forked(lock: Any) -> None:
    assert not lock.acquire(False)


def child_is_not_the_owner(context: Any) -> None:
    lock = context.RLock()
    with lock:
        join(started(context, 1, _forked, lock))
    assert not lock.locked()


SCENARIOS = [
    lock_excludes, holder_is_killed, waiters_are_told_once, unrepaired_is_told_again,
    stopped_holder_lets_time_pass, semaphore_is_repaired, permits_pass_between_processes,
    producers_that_end_owe_nothing, barrier_meets, barrier_breaks, event_releases_all,
    condition_notifies, dead_waiter_is_not_notified, queue_keeps_all, queues_are_inherited, queue_takes_long_items,
    joinable_queue_joins, shutdown_ends_every_wait, readers_share, reader_is_upgraded, dead_reader_is_forgotten,
    dead_writer_is_told, pool_works, gate_opens, child_is_not_the_owner,
]  # fmt: skip

INHERITANCE = [
    "lock_excludes", "holder_is_killed", "barrier_meets", "event_releases_all", "condition_notifies",
    "queues_are_inherited", "readers_share", "pool_works", "gate_opens",
]  # fmt: skip
"""The scenarios that depend on how a child gets the primitives: all others run with fork alone."""


if __name__ == "__main__":
    perform(SCENARIOS, INHERITANCE)
