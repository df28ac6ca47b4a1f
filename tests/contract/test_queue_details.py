"""The standard library's queues and semaphores in corner cases: ours do the same.

Invariant: a test that is parametrised over both asserts the standard library's own behaviour.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

import unsnarl

QUEUES = [queue.Queue, unsnarl.Queue]
CLOSING = [unsnarl.PriorityQueue, *([queue.PriorityQueue] if hasattr(queue.Queue, "shutdown") else [])]


def is_notified(condition: Any, act: Callable[[], object]) -> bool:
    """Return whether ``act``, which takes the condition's lock, notifies the waiters."""
    ready, heard = threading.Event(), list[bool]()

    def listen() -> None:
        with condition:
            ready.set()
            heard.append(condition.wait(30))

    thread = threading.Thread(target=listen)
    thread.start()
    ready.wait()
    act()
    thread.join()
    return heard == [True]


@pytest.mark.parametrize("make", CLOSING)
@pytest.mark.parametrize("name", ["not_empty", "not_full", "all_tasks_done"])
def test_a_shutdown_notifies_every_condition(make: Any, name: str) -> None:
    line = make()
    line.put(1)
    assert is_notified(getattr(line, name), lambda: line.shutdown(immediate=True))


@pytest.mark.parametrize("name", ["not_full", "all_tasks_done"])
def test_clear_notifies_waiters_for_room_and_for_the_end(name: str) -> None:
    line: unsnarl.Queue[int] = unsnarl.Queue(1)
    condition = getattr(line, name)
    line.put(1)
    assert is_notified(condition, line.clear)


@pytest.mark.parametrize("make", QUEUES)
def test_a_call_that_has_to_wait_calls_the_conditions_own_wait(make: Any) -> None:
    line = make(1)
    line.put("first")
    limits: list[Any] = []

    def make_room(timeout: float | None = None) -> None:
        limits.append(timeout)
        line.queue.clear()  # the mutex is held

    def bring(timeout: float | None = None) -> None:
        limits.append(timeout)
        line.queue.append("brought")

    def finish() -> None:
        limits.append("join")
        line.unfinished_tasks = 0

    line.not_full.wait, line.not_empty.wait, line.all_tasks_done.wait = make_room, bring, finish
    line.put("second")
    assert line.get() == "second"
    assert line.get(timeout=30) == "brought"
    assert limits[0] is None
    assert 0 < limits[1] <= 30
    line.join()
    line.put("third")
    assert line.get_nowait() == "third"
    with pytest.raises(queue.Empty):
        line.get(False)
    assert limits[2:] == ["join"]


@pytest.mark.parametrize("make", QUEUES)
def test_the_conditions_own_wait_has_the_timeout_of_the_call(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now, limits = [0.0], list[float]()

    def wait(timeout: float) -> None:
        limits.append(timeout)
        now[0] += 2

    monkeypatch.setattr(queue, "time", lambda: now[0])
    line = make(1)
    line.not_full.wait = line.not_empty.wait = wait
    with pytest.raises(queue.Empty):
        line.get(timeout=3)
    line.put("first")
    with pytest.raises(queue.Full):
        line.put("second", timeout=3)
    assert limits == [3, 1, 3, 1]


class Moody:
    """An item that can be compared until the test forbids it."""

    fails = False

    def __lt__(self, other: object) -> bool:
        if Moody.fails:
            raise TypeError("not now")
        return False


@pytest.mark.parametrize("make", CLOSING)
def test_a_shutdown_that_fails_has_closed_the_queue(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = make()
    for _ in range(4):
        line.put(Moody())
    with monkeypatch.context() as mood:
        mood.setattr(Moody, "fails", True)
        with pytest.raises(TypeError, match="not now"):
            line.shutdown(immediate=True)
    with pytest.raises(unsnarl.ShutDown):
        line.put(Moody())
    assert (line.qsize(), line.unfinished_tasks) == (3, 4)
    for _ in range(3):
        line.get_nowait()
    with pytest.raises(unsnarl.ShutDown):
        line.get_nowait()


class Replaced(Exception):  # noqa: N818 -- in the place of another name
    """What a program puts in the place of an exception of `queue`."""


class Narrower(queue.Empty):
    """The same, derived from what it replaces."""


@pytest.mark.parametrize("make", QUEUES)
@pytest.mark.parametrize("replaced", [Replaced, Narrower, LookupError])
def test_a_class_in_the_place_of_an_exception_catches_it(
    make: Any, replaced: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = make(1)
    with monkeypatch.context() as module:
        module.setattr(queue, "Empty", replaced)
        module.setattr(queue, "Full", replaced)
        with pytest.raises(replaced):
            line.get(timeout=0)
        line.put(1)
        with pytest.raises(replaced):
            line.put_nowait(2)
    line.get()
    with pytest.raises(queue.Empty) as caught:
        line.get_nowait()
    assert caught.type is queue.Empty


@pytest.mark.parametrize("replaced", [Replaced, Narrower, LookupError, Exception, KeyboardInterrupt, OSError, None, 3])
def test_an_exception_is_caught_as_ours_whatever_is_in_its_place(
    replaced: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "Empty", replaced)
    for _ in range(2):
        with pytest.raises(unsnarl.Empty):
            unsnarl.Queue[int]().get_nowait()


@pytest.mark.parametrize("make", QUEUES)
def test_a_container_of_ones_own_is_counted(make: Any) -> None:
    line = make()
    line.put(0)
    container = deque([1, 2])
    with line.mutex:
        line.queue = container
    assert [line.get_nowait(), line.get_nowait()] == [1, 2]
    with line.mutex:
        container.append(3)
    assert line.get_nowait() == 3
    assert line.empty()


@pytest.mark.parametrize("make", QUEUES)
def test_a_subclass_may_make_its_container_before_it_can_count(make: Any) -> None:
    class Sized(make):  # type: ignore[misc]
        def _init(self, maxsize: float) -> None:
            self.queue = [maxsize]
            self.first = 0

        def _qsize(self) -> int:
            return len(self.queue) - self.first

        def _get(self) -> object:
            self.first += 1
            return self.queue[self.first - 1]

    line = Sized(2.5)
    line.put(1)
    assert [line.get_nowait(), line.get_nowait()] == [2.5, 1]
    assert line.empty()


@pytest.mark.parametrize("make", QUEUES)
def test_a_timeout_is_looked_at_only_where_it_could_matter(make: Any) -> None:
    unbounded, bounded = make(), make(1)
    unbounded.put(1, timeout=-1)
    unbounded.put(2, timeout=1e11)
    bounded.put(3, timeout=1e11)
    assert [unbounded.get(timeout=1e11), bounded.get(timeout=1e11)] == [1, 3]
    with pytest.raises(ValueError, match="non-negative"):
        bounded.put(4, timeout=-1)
    with pytest.raises(ValueError, match="non-negative"):
        unbounded.get(timeout=-1)
    with pytest.raises(OverflowError):
        bounded.get(timeout=1e11)


@pytest.mark.parametrize("make", [threading.Semaphore, unsnarl.Semaphore])
def test_a_free_permit_needs_no_timeout(make: Any) -> None:
    semaphore = make(1)
    assert semaphore.acquire(timeout=1e11)
    with pytest.raises(OverflowError):
        semaphore.acquire(timeout=1e11)


@pytest.mark.parametrize("make", QUEUES)
@pytest.mark.parametrize(("maxsize", "room"), [(2.5, 3), (2, 2), (True, 1), (math.inf, None), (-1, None), (-0.5, None)])
def test_maxsize_may_be_any_number(make: Any, maxsize: float, room: int | None) -> None:
    line = make(maxsize)
    assert line.maxsize == maxsize
    assert type(line.maxsize) is type(maxsize)
    for number in range(5 if room is None else room):
        line.put_nowait(number)
    assert line.full() == (room is not None)
    if room is not None:
        with pytest.raises(queue.Full):
            line.put_nowait(9)
    line.maxsize = math.inf
    line.put_nowait(9)
    assert line.maxsize == math.inf


class Brittle(unsnarl.Queue[int]):
    """A queue from which some items cannot be got."""

    def _get(self) -> int:
        item: int = self.queue.popleft()
        if item < 0:
            raise ValueError("brittle")
        return item


def brittle(*items: int) -> Brittle:
    line = Brittle()
    for item in items:
        line.put(item)
    return line


def test_an_error_does_not_end_an_iteration_quietly() -> None:
    async def main() -> list[int]:
        line = brittle(1, -1, 2)
        line.shutdown()
        got = [await anext(line)]
        with pytest.raises(ValueError, match="brittle"):
            await anext(line)
        return got + [item async for item in line]

    assert asyncio.run(main()) == [1, 2]


def test_an_error_among_many_carries_the_items_that_were_got() -> None:
    line = brittle(1, 2, -1, 3)
    with pytest.raises(ValueError, match="brittle") as raised:
        line.get_many(5)
    assert getattr(raised.value, "got", None) == [1, 2]
    line.shutdown()
    assert line.get_many(5) == [3]


def test_a_task_that_cannot_come_keeps_no_thread_from_the_items() -> None:
    line: unsnarl.Queue[int] = unsnarl.Queue()
    loop = asyncio.new_event_loop()
    task = loop.create_task(line.async_get())
    loop.call_soon(loop.stop)
    loop.run_forever()
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(line.get(timeout=30)))
    thread.start()
    while line.waiting < 2:
        pass
    line.put(1)
    line.put(2)
    thread.join()
    assert got == [1]
    assert loop.run_until_complete(task) == 2
    loop.close()


@pytest.mark.parametrize("make", CLOSING)
def test_a_queue_that_is_shut_down_says_so_before_it_looks_at_the_timeout(make: Any) -> None:
    line = make(1)
    line.shutdown()
    with pytest.raises(unsnarl.ShutDown):
        line.get(timeout=-1)
    with pytest.raises(unsnarl.ShutDown):
        line.put(1, timeout=-1)


CLOSABLE = [unsnarl.Queue, *([queue.Queue] if hasattr(queue.Queue, "shutdown") else [])]


@pytest.mark.parametrize("make", CLOSABLE)
def test_a_shutdown_is_immediate_for_whatever_is_true(make: Any) -> None:
    for immediate, left in [(1, 0), ([0], 0), (0, 1), (None, 1)]:
        line = make()
        line.put(1)
        line.shutdown(immediate)
        assert line.qsize() == left


@pytest.mark.parametrize("make", CLOSABLE)
def test_being_shut_down_is_an_attribute_that_can_be_set(make: Any) -> None:
    line = make()
    line.put(1)
    line.is_shutdown = True
    with pytest.raises(unsnarl.ShutDown):
        line.put_nowait(2)
    assert line.get_nowait() == 1
    with pytest.raises(unsnarl.ShutDown):
        line.get_nowait()
    line.is_shutdown = False
    line.put(3)
    assert line.get_nowait() == 3


def test_batches_block_for_whatever_is_true() -> None:
    line: Any = unsnarl.Queue(2)
    line.put_many([1], 1)
    with pytest.raises(queue.Full):
        line.put_many([2, 3], [])
    assert line.get_many(2, "yes") == [1, 2]
    with pytest.raises(queue.Empty):
        line.get_many(1, None)


def pass_time() -> None:
    """Let some ten milliseconds pass in C, without switching threads; their places in the GIL's queue change."""
    sum(range(3_000_000))


def count_givers(line: Any) -> int:
    """Return how many parties wait to put, where none waits to get."""
    return int(line.waiting) if hasattr(line, "waiting") else len(line.not_full._waiters)


@pytest.mark.needs_gil
@pytest.mark.parametrize("make", QUEUES)
@pytest.mark.parametrize("again", range(10))
def test_a_party_that_runs_late_finds_what_was_there_in_time(make: Any, again: int) -> None:
    """The party that is notified first need not be the first to get the GIL."""
    line, late = make(2), list[bool]()

    def put_late() -> None:
        try:
            line.put(2, timeout=0.02)
        except queue.Full:
            late.append(False)

    line.put(0)
    line.put(0)
    threads = [threading.Thread(target=act) for act in (lambda: line.put(1), put_late)]
    for count, thread in enumerate(threads, start=1):
        thread.start()
        while count_givers(line) < count:
            time.sleep(0)
    line.get_nowait()
    line.get_nowait()
    pass_time()
    for thread in threads:
        thread.join()
    assert (late, line.qsize()) == ([], 2)


def test_an_empty_queue_is_polled_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = builtins.__import__

    def watched(name: str, *arguments: Any) -> Any:
        asked.append(name)
        return original(name, *arguments)

    line: Any = unsnarl.Queue(1)
    with pytest.raises(queue.Empty):
        line.get_nowait()
    line.put(1)
    monkeypatch.setattr(builtins, "__import__", watched)
    for poll in (lambda: line.put_nowait(2), line.get_nowait, line.get_nowait, lambda: line.get(timeout=0)):
        with contextlib.suppress(queue.Empty, queue.Full):
            poll()
    monkeypatch.undo()
    assert not asked
