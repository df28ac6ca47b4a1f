"""Wrong arguments and wrong moments: the standard library's exceptions, clear messages, no hang."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import unsnarl

EVERYTHING = [
    unsnarl.Lock,
    unsnarl.RLock,
    unsnarl.Semaphore,
    unsnarl.BoundedSemaphore,
    unsnarl.Condition,
    unsnarl.Event,
    lambda: unsnarl.Barrier(2),
    unsnarl.Queue,
    unsnarl.LifoQueue,
    unsnarl.PriorityQueue,
    unsnarl.SimpleQueue,
    unsnarl.RWLock,
    unsnarl.CapacityLimiter,
    unsnarl.CountdownEvent,
    unsnarl.Latch,
]


@pytest.mark.parametrize("make", EVERYTHING)
def test_everything_can_be_referred_to_weakly_and_tells_its_state(make: Callable[[], Any]) -> None:
    thing = make()
    reference = weakref.ref(thing)
    assert thing.waiting == 0
    assert "waiting" in thing.statistics() or "getting" in thing.statistics()
    del thing
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("make", EVERYTHING)
def test_nothing_can_be_pickled_or_copied(make: Callable[[], Any]) -> None:
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            duplicate(make())


@pytest.mark.parametrize("make", [unsnarl.Lock, unsnarl.RLock])
def test_lock_arguments(make: Callable[[], Any]) -> None:
    lock = make()
    with pytest.raises(RuntimeError, match=r"release un(locked|-acquired) lock|cannot release"):
        lock.release()
    with pytest.raises(ValueError, match="non-blocking"):
        lock.acquire(False, 1)
    with pytest.raises(ValueError, match="non-negative"):
        lock.acquire(timeout=-2)
    with pytest.raises(OverflowError):
        lock.acquire(timeout=threading.TIMEOUT_MAX * 10)
    with pytest.raises(TypeError):
        lock.acquire(timeout="1")
    with pytest.raises(TypeError):
        lock.acquire(True, 1, 2)
    with pytest.raises(TypeError):
        lock.acquire(wrong=1)
    assert lock.acquire(timeout=threading.TIMEOUT_MAX)
    lock.release()


def test_semaphore_arguments() -> None:
    with pytest.raises(ValueError, match=">= 0"):
        unsnarl.Semaphore(-1)
    semaphore = unsnarl.BoundedSemaphore(1)
    with pytest.raises(ValueError, match="too many"):
        semaphore.release()
    with pytest.raises(ValueError, match="one or more"):
        unsnarl.Semaphore().release(0)
    with pytest.raises(ValueError, match="non-blocking"):
        semaphore.acquire(False, 1)
    assert not unsnarl.Semaphore(0).acquire(timeout=-1)


def test_queue_arguments() -> None:
    queue: unsnarl.Queue[int] = unsnarl.Queue(1)
    for call in (lambda: queue.get(timeout=-1), lambda: queue.put(1, timeout=-1)):
        with pytest.raises(ValueError, match="non-negative"):
            call()
    with pytest.raises(ValueError, match="too many"):
        queue.task_done()
    with pytest.raises(unsnarl.Empty):
        queue.peek()
    with pytest.raises(TypeError):
        queue.put()  # type: ignore[call-arg]
    queue.put_many([1])
    assert queue.peek() == 1
    with pytest.raises(unsnarl.Full) as full:
        queue.put_many([2, 3], block=False)
    assert full.value.args == (0,)
    assert queue.get_many(5) == [1]
    assert unsnarl.Queue(-3).maxsize == -3


def test_a_batch_that_fails_keeps_the_words_and_says_how_far_it_came() -> None:
    line: unsnarl.PriorityQueue[Any] = unsnarl.PriorityQueue()
    with pytest.raises(TypeError, match="not supported between") as raised:
        line.put_many([1, "a", 2])
    assert getattr(raised.value, "put", None) == 1
    closed: unsnarl.Queue[int] = unsnarl.Queue()
    closed.shutdown()
    with pytest.raises(unsnarl.ShutDown) as shut_down:
        closed.put_many([1])
    assert shut_down.value.args == (0,)


def test_batches_keep_order_and_count_tasks() -> None:
    queue: unsnarl.Queue[int] = unsnarl.Queue()
    queue.put_many(range(10))
    assert queue.unfinished_tasks == 10
    assert queue.get_many(4) == [0, 1, 2, 3]
    assert queue.clear() == 6
    assert queue.unfinished_tasks == 4


def test_the_container_can_be_had() -> None:
    queue: unsnarl.Queue[int] = unsnarl.Queue()
    queue.put_many([1, 2, 3])
    with queue.mutex:
        queue.queue.clear()
    assert queue.empty()
    queue.put(4)
    assert list(queue.queue) == [4]


def test_a_join_of_ones_own_over_the_queues_condition() -> None:
    """The loop that programs write in order to have a timeout."""
    queue: unsnarl.Queue[int] = unsnarl.Queue()
    queue.put(1)
    ready = threading.Event()

    def work() -> None:
        ready.wait()
        queue.get()
        queue.task_done()

    thread = threading.Thread(target=work)
    thread.start()
    with queue.all_tasks_done:
        ready.set()
        while queue.unfinished_tasks:
            assert queue.all_tasks_done.wait(30)
    thread.join()


def test_a_program_that_changes_the_container_and_notifies() -> None:
    queue: unsnarl.Queue[int] = unsnarl.Queue(1)
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(queue.get(timeout=30)))
    assert queue.not_empty is queue.not_empty
    thread.start()
    while not queue.waiting:
        pass
    with queue.not_empty:
        queue.queue.append(7)
        queue.unfinished_tasks += 1
        queue.not_empty.notify()
    thread.join(30)
    assert got == [7]
    queue.put(8)
    with queue.mutex:
        queue.queue.clear()
        queue.unfinished_tasks = 0
        queue.all_tasks_done.notify_all()
        queue.not_full.notify_all()
    queue.join()
    queue.put(9, timeout=0)
    assert queue.get_nowait() == 9


def test_queues_with_conditions_are_collected() -> None:
    queue: unsnarl.Queue[int] = unsnarl.Queue()
    assert queue.not_full.lock is queue.mutex
    reference = weakref.ref(queue)
    del queue
    gc.collect()
    assert reference() is None


def test_a_call_that_never_ran_has_done_nothing() -> None:
    queue: unsnarl.Queue[int] = unsnarl.Queue()
    queue.async_put(1).close()
    thrown = queue.async_put(2)
    with pytest.raises(ValueError, match="stop"):
        thrown.throw(ValueError("stop"))
    assert queue.empty()
    queue.put(3)
    never = queue.async_get()
    never.close()
    with pytest.raises(RuntimeError, match="already awaited"):
        never.send(None)
    assert queue.get_nowait() == 3


def test_what_is_got_may_be_anything() -> None:
    things: list[Any] = [None, (1, 2), (), ValueError("a value, not a failure"), StopIteration(1), [3]]
    queue: unsnarl.Queue[Any] = unsnarl.Queue()

    async def main() -> None:
        for thing in things:
            await queue.async_put(thing)
        for thing in things:
            assert await queue.async_get() is thing
        for thing in things:
            waiting = asyncio.ensure_future(queue.async_get())
            await asyncio.sleep(0)
            queue.put(thing)
            assert await waiting is thing

    asyncio.run(main())


def test_barrier_arguments() -> None:
    with pytest.raises(ValueError, match="parties"):
        unsnarl.Barrier(0).abort()
    with pytest.raises(threading.BrokenBarrierError):
        unsnarl.Barrier(2).wait(timeout=0)


def test_rwlock_changes_sides() -> None:
    lock = unsnarl.RWLock()
    with lock.writer:
        assert not lock.reader.acquire(timeout=0)
        lock.downgrade()
        assert lock.readers == 1
        assert lock.try_upgrade()
    assert not lock.locked()
    with lock.reader, lock.reader:
        assert not lock.try_upgrade()
        assert not lock.writer.acquire(False)
    for wrong in (lock.reader.release, lock.writer.release, lock.downgrade, lock.try_upgrade):
        with pytest.raises(RuntimeError):
            wrong()


def test_limiter_knows_its_borrowers() -> None:
    limiter = unsnarl.CapacityLimiter(2)
    with limiter:
        with pytest.raises(RuntimeError, match="already"):
            limiter.acquire()
        limiter.total_tokens = 1
        assert limiter.available_tokens == 0
    with pytest.raises(RuntimeError, match="none"):
        limiter.release()


def test_a_borrower_waits_for_one_token_at_a_time() -> None:
    async def main() -> None:
        limiter = unsnarl.CapacityLimiter(1)
        limiter.acquire()
        first, second = limiter.async_acquire(), limiter.async_acquire()  # of one and the same task
        waiting = asyncio.ensure_future(first)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="waits for one"):
            await asyncio.wait_for(second, 30)
        limiter.release()
        assert await waiting
        limiter.async_release()
        assert (limiter.borrowed_tokens, limiter.waiting) == (0, 0)

    asyncio.run(main())


def test_guard_latch_flag_once() -> None:
    guard = unsnarl.ResourceGuard("reading from")
    with guard, pytest.raises(RuntimeError, match="already reading from"), guard:
        pass
    latch = unsnarl.Latch(1)
    latch.count_down()
    with pytest.raises(ValueError, match="negative"):
        latch.count_down()
    with pytest.raises(TypeError):
        latch.up()
    flag = unsnarl.Flag()
    assert flag.set(1)
    assert not flag.set(2)
    assert flag.get() == 1
    once = unsnarl.Once[int]()
    assert once.call(lambda: 7) == once.call(lambda: 8) == 7


def test_asynchronous_methods_need_a_task() -> None:
    with pytest.raises(RuntimeError, match="task"):
        unsnarl.Lock().async_acquire().send(None)
    with pytest.raises(RuntimeError, match="loop"):
        unsnarl.Event().async_wait().send(None)


def test_a_task_that_is_collected_gives_back_what_it_was_granted() -> None:
    semaphore = unsnarl.Semaphore(0)
    loop = asyncio.new_event_loop()
    task = loop.create_task(semaphore.async_acquire())
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert semaphore.waiting == 1
    semaphore.release()
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    assert semaphore.value == 1


def test_a_closed_loop_keeps_nothing() -> None:
    semaphore = unsnarl.Semaphore(0)
    loop = asyncio.new_event_loop()
    task = loop.create_task(semaphore.async_acquire())
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    semaphore.release()
    assert semaphore.value == 1, "the grant went to a task that can never run"
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    setattr(task, "_log_destroy_pending", False)  # noqa: B010 - of asyncio, and of no stub


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_not_held_up_by_the_parents_waiters() -> None:
    semaphore = unsnarl.Semaphore(0)
    thread = threading.Thread(target=semaphore.acquire)
    thread.start()
    while semaphore.waiting == 0:
        pass
    child = os.fork()
    if child == 0:
        semaphore.release()
        os._exit(0 if semaphore.acquire(timeout=10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    semaphore.release()
    thread.join()
