"""What the primitives between processes promise, as scenarios with real processes.

    python -m tests.contract.process_scenarios METHOD [NAME]...

Each scenario runs with children by the given start method; those that need none to be killed
run by the context, the others by fork and signals. Invariant: nothing sleeps to synchronise,
and every wait has an end (`TIMEOUT_S`) that fails the scenario.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from unsnarl import Full, ipc

TIMEOUT_S = 60


def _started(context: Any, count: int, target: Any, *args: Any) -> list[Any]:
    processes = [context.Process(target=target, args=args, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    return processes


def _join(processes: list[Any]) -> None:
    for process in processes:
        process.join(TIMEOUT_S)
        assert process.exitcode == 0, process


def _kill(process: Any) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join(TIMEOUT_S)
    assert process.exitcode == -signal.SIGKILL


def _told(lock: Any) -> int:
    """Return the id of the process whose death comes with the lock."""
    try:
        lock.acquire(timeout=TIMEOUT_S)
    except ipc.OwnerDied as death:
        return death.pid
    raise AssertionError("nobody was told")


def _count(lock: Any, value: Any, times: int) -> None:
    for _ in range(times):
        with lock:
            value.value += 1


def lock_excludes(context: Any) -> None:
    for lock in (context.Lock(), context.RLock(), context.BoundedSemaphore(1), context.Condition()):
        value = context.RawValue("i")
        _join(_started(context, 3, _count, lock, value, 500))
        assert value.value == 1500, (lock, value)


def _hold(lock: Any, ready: Any) -> None:
    lock.acquire()
    ready.set()
    while True:
        signal.pause()


def holder_is_killed(context: Any) -> None:
    for lock in (context.Lock(), context.RLock()):
        ready = context.Event()
        (process,) = _started(context, 1, _hold, lock, ready)
        assert ready.wait(TIMEOUT_S)
        assert lock.statistics()["holder"] == process.pid
        assert not lock.acquire(timeout=0.05)
        _kill(process)
        assert _told(lock) == process.pid
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
    (holder,) = _started(context, 1, _hold, lock, ready)
    assert ready.wait(TIMEOUT_S)
    waiters = _started(context, 3, _wait_for, lock, told)
    while not lock.statistics()["waiting"]:
        os.sched_yield()
    _kill(holder)
    _join(waiters)
    assert told.value == 1


def unrepaired_is_told_again(context: Any) -> None:
    lock, ready = context.Lock(), context.Event()
    (process,) = _started(context, 1, _hold, lock, ready)
    assert ready.wait(TIMEOUT_S)
    _kill(process)
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
    (process,) = _started(context, 1, _hold, lock, ready)
    assert ready.wait(TIMEOUT_S)
    os.kill(process.pid, signal.SIGSTOP)
    assert lock.acquire(timeout=0.05) is False
    os.kill(process.pid, signal.SIGCONT)
    _kill(process)


def _take_and_stay(semaphore: Any, ready: Any) -> None:
    semaphore.acquire()
    semaphore.acquire()
    ready.set()
    while True:
        signal.pause()


def semaphore_is_repaired(context: Any) -> None:
    for semaphore in (context.Semaphore(2), context.BoundedSemaphore(2)):
        ready = context.Event()
        (process,) = _started(context, 1, _take_and_stay, semaphore, ready)
        assert ready.wait(TIMEOUT_S)
        _kill(process)
        assert semaphore.statistics()["lost"] == 2
        assert _told(semaphore) == process.pid
        assert semaphore.make_consistent() == 2
        assert semaphore.value == 2
        assert semaphore.make_consistent() == 0


def _meet(barrier: Any, places: Any, rounds: int) -> None:
    for _ in range(rounds):
        places.put(barrier.wait(TIMEOUT_S))


def barrier_meets(context: Any) -> None:
    barrier, places = context.Barrier(3), context.Queue()
    processes = _started(context, 3, _meet, barrier, places, 5)
    got = sorted(places.get(timeout=TIMEOUT_S) for _ in range(15))
    _join(processes)
    assert got == [0] * 5 + [1] * 5 + [2] * 5


def _wait_at(barrier: Any) -> None:
    barrier.wait()


def barrier_breaks(context: Any) -> None:
    from threading import BrokenBarrierError

    barrier = context.Barrier(3)
    (process,) = _started(context, 1, _wait_at, barrier)
    while barrier.n_waiting != 1:
        os.sched_yield()
    _kill(process)
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
    processes = _started(context, 3, _wait_event, event, done)
    event.set()
    _join(processes)
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
    processes = _started(context, 3, _wait_notified, condition, waiting, done)
    for _ in range(3):
        waiting.acquire(timeout=TIMEOUT_S)
    with condition:
        assert condition.waiting == 3
        condition.notify()
    assert done.acquire(timeout=TIMEOUT_S)
    with condition:
        assert condition.waiting == 2
        condition.notify_all()
    _join(processes)
    assert done.value == 2


def dead_waiter_is_not_notified(context: Any) -> None:
    condition, waiting, done = context.Condition(), context.Semaphore(0), context.Semaphore(0)
    (first,) = _started(context, 1, _wait_notified, condition, waiting, done)
    assert waiting.acquire(timeout=TIMEOUT_S)
    with condition:
        assert condition.waiting == 1
    (second,) = _started(context, 1, _wait_notified, condition, waiting, done)
    assert waiting.acquire(timeout=TIMEOUT_S)
    _kill(first)
    with condition:
        condition.notify()
    _join([second])


def _produce(queue: Any, count: int) -> None:
    for number in range(count):
        queue.put((os.getpid(), number, b"x" * (number % 50)))


def queue_keeps_all(context: Any) -> None:
    for queue in (context.Queue(), context.Queue(5), context.JoinableQueue(), context.SimpleQueue()):
        processes = _started(context, 3, _produce, queue, 200)
        last: dict[int, int] = {}
        for _ in range(600):
            pid, number, filling = queue.get()
            assert len(filling) == number % 50
            assert number == last.get(pid, -1) + 1
            last[pid] = number
        _join(processes)
        assert queue.empty()


def _echo(queue: Any, answers: Any) -> None:
    answers.put(queue.get(timeout=TIMEOUT_S))


def queues_are_inherited(context: Any) -> None:
    queue, answers = ipc.Queue(4), ipc.Queue(capacity=4096)
    processes = _started(context, 1, _echo, queue, answers)
    queue.put({"a": [1, 2]})
    assert answers.get(timeout=TIMEOUT_S) == {"a": [1, 2]}
    _join(processes)


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


def _work(queue: Any) -> None:
    while queue.get() is not None:
        queue.task_done()
    queue.task_done()


def joinable_queue_joins(context: Any) -> None:
    queue = context.JoinableQueue()
    processes = _started(context, 2, _work, queue)
    for number in range(50):
        queue.put(number)
    assert queue.join(TIMEOUT_S)
    for _ in processes:
        queue.put(None)
    _join(processes)


def _read(lock: Any, inside: Any) -> None:
    with lock.reader:
        inside.wait(TIMEOUT_S)


def readers_share(context: Any) -> None:
    lock, inside = ipc.RWLock(), context.Barrier(3)
    processes = _started(context, 2, _read, lock, inside)
    with lock.reader:
        inside.wait(TIMEOUT_S)
    _join(processes)
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
        raise AssertionError("upgraded what nobody holds")
    (process,) = _started(context, 1, _hold_side, "reader", lock, ready)
    assert ready.wait(TIMEOUT_S)
    lock.reader.acquire()
    assert lock.try_upgrade() is False
    assert lock.readers == 2
    _kill(process)
    assert lock.try_upgrade() is True
    assert lock.readers == 0
    assert not lock.reader.acquire(False)
    lock.downgrade()
    assert lock.readers == 1
    lock.reader.release()
    assert not lock.locked()


def _hold_side(side: Any, lock: Any, ready: Any) -> None:
    getattr(lock, side).acquire()
    ready.set()
    while True:
        signal.pause()


def dead_reader_is_forgotten(context: Any) -> None:
    lock, ready = ipc.RWLock(), context.Event()
    (process,) = _started(context, 1, _hold_side, "reader", lock, ready)
    assert ready.wait(TIMEOUT_S)
    assert not lock.writer.acquire(timeout=0.05)
    _kill(process)
    assert lock.writer.acquire(timeout=TIMEOUT_S)
    lock.writer.release()


def dead_writer_is_told(context: Any) -> None:
    lock, ready = ipc.RWLock(), context.Event()
    (process,) = _started(context, 1, _hold_side, "writer", lock, ready)
    assert ready.wait(TIMEOUT_S)
    _kill(process)
    for side in (lock.reader, lock.writer):
        assert _told(side) == process.pid
    lock.make_consistent()
    lock.writer.release()
    with lock.reader:
        assert lock.readers == 1


def _release_soon(lock: Any, go: Any) -> None:
    assert go.wait(TIMEOUT_S)
    lock.release()


def tasks_wait(context: Any) -> None:
    lock, go, event = context.Lock(), context.Event(), context.Event()
    lock.acquire()
    processes = _started(context, 1, _release_soon, lock, go)

    async def main() -> None:
        assert await lock.async_acquire(timeout=0.01) is False
        assert await event.async_wait(0.01) is False
        waiter = asyncio.ensure_future(lock.async_acquire())
        await asyncio.sleep(0)
        go.set()  # the loop runs on
        assert await asyncio.wait_for(waiter, TIMEOUT_S)
        lock.async_release()
        async with lock:
            pass
        event.set()
        assert await event.async_wait(TIMEOUT_S)

    asyncio.run(main())
    _join(processes)


def _loops() -> list[Callable[[Any], Any]]:
    """Return what runs a coroutine: asyncio, and trio where it is installed."""
    try:
        import trio
    except ImportError:
        print("without trio, which is not installed")
        return [asyncio.run]
    in_trio: Any = trio.run
    return [asyncio.run, lambda main: in_trio(_itself, main)]


async def _itself(awaitable: Any) -> Any:
    return await awaitable


def _answer(condition: Any, value: Any) -> None:
    for number in (1, 3):
        with condition:
            assert condition.wait_for(lambda number=number: value.value == number, TIMEOUT_S)
            value.value += 1
            condition.notify_all()


async def _converse(condition: Any, value: Any) -> None:
    for number in (0, 2):
        async with condition:
            value.value = number + 1
            condition.notify_all()
            assert await condition.async_wait_for(lambda number=number: value.value == number + 2, TIMEOUT_S)
            assert condition.locked()
    async with condition:
        assert await condition.async_wait(0.01) is False
        assert await condition.async_wait_for(lambda: False, 0.01) is False
    assert not condition.locked()


def condition_is_awaited(context: Any) -> None:
    for run in _loops():
        for condition in (context.Condition(), context.Condition(context.Lock())):
            value = context.RawValue("i")
            processes = _started(context, 1, _answer, condition, value)
            run(_converse(condition, value))
            _join(processes)


def condition_gives_way_to_tasks(context: Any) -> None:
    condition = context.Condition()
    order: list[str] = []

    async def waiter() -> None:
        async with condition, condition:
            order.append("waits")
            assert await condition.async_wait(TIMEOUT_S)
            order.append("notified")

    async def notifier() -> None:
        async with condition:
            order.append("notifies")
            condition.notify()

    async def main() -> None:
        first = asyncio.ensure_future(waiter())
        await asyncio.sleep(0)
        await asyncio.wait_for(notifier(), TIMEOUT_S)
        await asyncio.wait_for(first, TIMEOUT_S)

    asyncio.run(main())
    assert order == ["waits", "notifies", "notified"]
    assert not condition.locked()


def barrier_is_awaited(context: Any) -> None:
    for run in _loops():
        barrier, places = context.Barrier(3), context.Queue()
        processes = _started(context, 2, _meet, barrier, places, 5)

        async def meet(barrier: Any = barrier) -> list[int]:
            return [await barrier.async_wait(TIMEOUT_S) for _ in range(5)]

        got = run(meet())
        _join(processes)
        assert sorted([places.get(timeout=TIMEOUT_S) for _ in range(10)] + got) == [0] * 5 + [1] * 5 + [2] * 5


def barrier_breaks_for_tasks(context: Any) -> None:
    from threading import BrokenBarrierError

    barrier = context.Barrier(3)
    (process,) = _started(context, 1, _wait_at, barrier)
    while barrier.n_waiting != 1:
        os.sched_yield()
    _kill(process)

    async def meet() -> None:
        try:
            await barrier.async_wait(TIMEOUT_S)
        except BrokenBarrierError:
            return
        raise AssertionError("met the dead")

    asyncio.run(meet())


def queue_is_awaited(context: Any) -> None:
    for run in _loops():
        queue, answers = context.Queue(1), context.Queue()

        async def talk(queue: Any = queue, answers: Any = answers) -> None:
            await queue.async_put("one", TIMEOUT_S)
            try:
                await queue.async_put("two many", 0.01)
            except Full:
                pass
            else:
                raise AssertionError("more than maxsize")
            processes = _started(context, 1, _echo, queue, answers)
            assert await answers.async_get(TIMEOUT_S) == "one"
            await answers.async_put("without a bound")
            assert await answers.async_get(TIMEOUT_S) == "without a bound"
            _join(processes)

        run(talk())


def task_is_told_of_a_death(context: Any) -> None:
    rw = ipc.RWLock()
    for lock, entered in ((context.Lock(), None), (context.RLock(), None), (rw, rw.writer)):
        ready = context.Event()
        arguments = ("writer", lock, ready) if entered else (lock, ready)
        (process,) = _started(context, 1, _hold_side if entered else _hold, *arguments)
        assert ready.wait(TIMEOUT_S)
        _kill(process)

        async def repair(lock: Any = lock, entered: Any = entered or lock) -> None:
            try:
                async with entered:
                    raise AssertionError("async with ran its block")
            except ipc.OwnerDied:
                assert not lock.locked()
            try:
                await entered.async_acquire(TIMEOUT_S)
            except ipc.OwnerDied:
                lock.make_consistent()
            entered.async_release()
            async with entered:
                assert lock.locked()

        asyncio.run(repair())


def _square(number: int) -> int:
    return number * number


def pool_works(context: Any) -> None:
    with context.Pool(2) as pool:
        assert pool.map(_square, range(20)) == [number * number for number in range(20)]


def gate_opens(context: Any) -> None:
    met = context.Barrier(4)
    processes = [context.Process(target=_wait_at, args=(met,)) for _ in range(3)]
    ipc.start_together(processes)
    met.wait(TIMEOUT_S)
    _join(processes)


def _forked(lock: Any) -> None:
    assert not lock.acquire(False)


def child_is_not_the_owner(context: Any) -> None:
    lock = context.RLock()
    with lock:
        _join(_started(context, 1, _forked, lock))
    assert not lock.locked()


SCENARIOS = [
    lock_excludes, holder_is_killed, waiters_are_told_once, unrepaired_is_told_again,
    stopped_holder_lets_time_pass, semaphore_is_repaired, barrier_meets, barrier_breaks, event_releases_all,
    condition_notifies, dead_waiter_is_not_notified, queue_keeps_all, queues_are_inherited, queue_takes_long_items,
    joinable_queue_joins, readers_share, reader_is_upgraded, dead_reader_is_forgotten, dead_writer_is_told,
    tasks_wait, condition_is_awaited, condition_gives_way_to_tasks, barrier_is_awaited, barrier_breaks_for_tasks,
    queue_is_awaited, task_is_told_of_a_death, pool_works, gate_opens, child_is_not_the_owner,
]  # fmt: skip

INHERITANCE = [
    "lock_excludes", "holder_is_killed", "barrier_meets", "event_releases_all", "condition_notifies",
    "queues_are_inherited", "readers_share", "pool_works", "gate_opens",
]  # fmt: skip
"""Those that differ by how a child gets the primitives: the others are run with fork alone."""


def main() -> None:
    """Run the scenarios named, or all that make sense with the start method."""
    method, *names = sys.argv[1:]
    names = names or ([] if method == "fork" else INHERITANCE)
    context = ipc.get_context(method)
    for scenario in SCENARIOS:
        if not names or scenario.__name__ in names:
            print(scenario.__name__, flush=True)
            scenario(context)
    print("ok")


if __name__ == "__main__":
    main()
