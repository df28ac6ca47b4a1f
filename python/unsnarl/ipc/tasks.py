"""Lets tasks wait for other processes: the loop's thread never sleeps on a word in shared memory.

An attempt that does not succeed returns the word to sleep on (`_native.IpcSleep`). A thread of unsnarl sleeps on up
to 126 such words at a time (futex_waitv(2)). When one changes, it sets an `unsnarl.Event`, which wakes the task in
its loop. The task then tries again in its own thread: a lock belongs to the thread that took it.

The thread exists only while a task waits. Invariant: if a wake-up reaches a sleep whose task has left, it is passed
on to another sleeper.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from unsnarl import sync
from unsnarl._native import IpcEvent, IpcSleep, ipc_wait_any
from unsnarl.ipc.errors import OwnerDied
from unsnarl.sync.backends.condition import take_back

WORDS_PER_THREAD = 126
"""The kernel accepts 128 words; one of them wakes the thread itself."""
RECHECK_S = 1.0
"""Seconds after which every task re-checks, in case a wake-up was lost."""


class _Entry:
    """A task's sleep."""

    __slots__ = ("event", "has_left", "is_woken", "sleep")

    def __init__(self, sleep: IpcSleep) -> None:
        self.sleep = sleep
        self.event = sync.Event()
        self.has_left = False
        self.is_woken = False


class _Watcher:
    """A thread that sleeps on behalf of tasks."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: list[_Entry] = []
        self._news = IpcEvent()
        self._runs = False

    def add(self, entry: _Entry) -> bool:
        """Add a sleep, if there is room."""
        with self._guard:
            if len(self._entries) >= WORDS_PER_THREAD:
                return False
            if not self._runs:
                threading.Thread(target=self._run, name="unsnarl-ipc-watcher", daemon=True).start()
                self._runs = True
            self._entries.append(entry)
        self._news.set()
        return True

    def remove(self, entry: _Entry) -> None:
        """Remove a sleep whose task has left."""
        with self._guard:
            entry.has_left = True
            if entry in self._entries:
                self._entries.remove(entry)
            is_woken = entry.is_woken
        if is_woken:
            entry.sleep.pass_on()
        self._news.set()

    def _run(self) -> None:
        recheck = time.monotonic() + RECHECK_S
        while (entries := self._begin()) is not None:
            arrival = self._news._arrive()
            news = self._news._attempt(arrival)
            if not isinstance(news, IpcSleep):
                self._news.clear()
                continue
            ended = ipc_wait_any([news, *(entry.sleep for entry in entries)], max(0.0, recheck - time.monotonic()))
            if ended is None or time.monotonic() >= recheck:
                woken, recheck = entries, time.monotonic() + RECHECK_S
            else:
                woken = [entries[number - 1] for number in ended if number > 0]
            self._wake(woken)

    def _begin(self) -> list[_Entry] | None:
        """Return the sleeps; None if there are none, and the thread ends."""
        with self._guard:
            if not self._entries:
                self._runs = False
                return None
            return list(self._entries)

    def _wake(self, woken: list[_Entry]) -> None:
        with self._guard:
            for entry in woken:
                entry.is_woken = True
                if entry in self._entries:
                    self._entries.remove(entry)
            left = [entry for entry in woken if entry.has_left]
        for entry in left:
            entry.sleep.pass_on()
        for entry in woken:
            entry.event.set()


_watchers: list[_Watcher] = []


def _forget() -> None:
    """Drop the watchers in a forked child, where their threads do not exist."""
    _watchers.clear()


os.register_at_fork(after_in_child=_forget)


def _watch(entry: _Entry) -> _Watcher:
    for watcher in _watchers:
        if watcher.add(entry):
            return watcher
    watcher = _Watcher()
    watcher.add(entry)
    _watchers.append(watcher)
    return watcher


async def _sleep(sleep: IpcSleep, left: float | None) -> bool:
    """Wait until the word changes; False if the time was up first."""
    entry = _Entry(sleep)
    watcher = _watch(entry)
    woken = False
    try:
        woken = bool(await entry.event.async_wait(left))
    finally:
        if not woken:
            watcher.remove(entry)
    return woken


async def until(attempt: Callable[[bool], Any], timeout: float | None) -> Any:
    """Repeat the attempt until it succeeds; returns its value, or an `IpcSleep` if the time was up.

    Cancellation: a wake-up that reached a cancelled task goes to another sleeper.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    outcome = attempt(False)
    while isinstance(outcome, IpcSleep):
        left = None if deadline is None else deadline - time.monotonic()
        if (left is not None and left <= 0) or not await _sleep(outcome, left):
            return outcome
        outcome = attempt(True)
    return outcome


def is_done(outcome: object) -> bool:
    """Tell whether `until` ended in time."""
    return not isinstance(outcome, IpcSleep)


async def acquire(lock: Any, timeout: float | None) -> bool:
    """Take a lock, a permit or one side of a read/write lock."""
    return is_done(await until(lock._attempt, timeout))


_inner: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""The inner lock of each RLock, which distinguishes the tasks of one thread."""


async def acquire_reentrant(lock: Any, timeout: float | None) -> bool:
    """Take an RLock: tasks exclude each other though they share the thread that owns it."""
    inner = _inner.get(lock)
    if inner is None:
        inner = _inner.setdefault(lock, sync.RLock())
    deadline = None if timeout is None else time.monotonic() + timeout
    if not await inner.async_acquire(timeout):
        return False
    had = False
    try:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        had = await acquire(lock, left)
    except OwnerDied:
        had = True
        raise
    finally:
        if not had:
            inner.async_release()
    return had


def release_reentrant(lock: Any) -> None:
    """Release an RLock that a task took."""
    inner = _inner.get(lock)
    lock.release()
    if inner is not None:
        inner.async_release()


async def enter(lock: Any) -> None:
    """Begin ``async with``; after OwnerDied the lock is not held."""
    try:
        await lock.async_acquire()
    except OwnerDied:
        if getattr(lock, "_is_mine", bool)():
            lock.async_release()
        raise


def awaited(primitive: Any) -> Any:
    """Begin ``await primitive``."""
    return primitive.async_wait().__await__()


async def leave(lock: Any) -> None:
    """End ``async with``."""
    lock.async_release()


async def wait_event(event: Any, timeout: float | None) -> bool:
    """Wait until an event is set."""
    arrival = event._arrive()
    return event.is_set() or is_done(await until(lambda _: event._attempt(arrival), timeout))


async def wait_countdown(event: Any, timeout: float | None) -> bool:
    """Wait until a countdown is at zero."""
    return is_done(await until(lambda _: event._attempt(), timeout))


async def wait_barrier(barrier: Any, timeout: float | None) -> int:
    """Wait for the other parties."""
    timeout = barrier._timeout if timeout is None else timeout
    deadline = None if timeout is None else time.monotonic() + timeout
    account = barrier._enter()
    try:
        return await _meet(barrier, account, deadline)
    finally:
        barrier._leave(account)


async def _meet(barrier: Any, account: int | None, deadline: float | None) -> int:
    arrival = barrier._arrive()
    while arrival is None:
        # A complete round is about to end; the last party runs its action.
        if not is_done(await until(lambda has_slept: barrier._attempt_idle(account, has_slept), _left(deadline))):
            barrier.abort()
        arrival = barrier._arrive()
    round_, place, is_complete = arrival
    if is_complete:
        return int(place)
    done = False
    try:
        attempt = until(lambda has_slept: barrier._attempt(round_, account, has_slept), _left(deadline))
        done = is_done(await attempt)
    finally:
        if not done:
            barrier._give_up(round_)
    if not done:
        raise threading.BrokenBarrierError
    return int(place)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class _TakenBack:
    """A condition's lock in the form that `take_back` expects.

    A caller that gets `OwnerDied` holds the lock, so it must not try again; the death is reported afterwards.
    """

    def __init__(self, lock: Any, levels: int) -> None:
        self._lock = lock
        self._acquire = acquire_reentrant if levels else acquire
        self.death: OwnerDied | None = None

    async def async_acquire(self) -> None:
        try:
            await self._acquire(self._lock, None)
        except OwnerDied as death:
            self.death = death

    def _deepen(self, depth: int) -> None:
        _inner[self._lock]._deepen(depth)


async def wait_condition(condition: Any, timeout: float | None) -> bool:
    """Give the lock up, wait to be notified, take the lock again."""
    lock = condition.lock
    inner = _inner.get(lock)
    levels = 0 if inner is None else inner._async_depth()
    position = condition._arrive()
    if inner is not None:
        for _ in range(levels):
            inner.async_release()
    try:
        await until(lambda _: position._attempt(), timeout)
    finally:
        was_notified = position._leave()
        taken = _TakenBack(lock, levels)
        try:
            await take_back(taken, levels)
        finally:
            position._restore()
        if taken.death is not None:
            raise taken.death
    return bool(was_notified)


async def wait_condition_for(condition: Any, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
    """Wait until the predicate is true; its last value, which is false if time ran out."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while not (value := predicate()):
        left = _left(deadline)
        if left == 0.0:
            break
        await wait_condition(condition, left)
    return value


async def put(queue: Any, item: bytes, timeout: float | None) -> None:
    """Put bytes at the end of a queue."""
    attempts = queue._put_attempts()
    if not is_done(await until(lambda has_slept: queue._attempt_put(item, attempts, has_slept), timeout)):
        raise sync.Full


async def get(queue: Any, timeout: float | None) -> Any:
    """Take the oldest object of a queue."""
    outcome = await until(queue._attempt_get, timeout)
    if not is_done(outcome):
        raise sync.Empty
    return outcome


async def join(queue: Any, timeout: float | None) -> bool:
    """Wait until every item of a queue is dealt with."""
    return is_done(await until(lambda _: queue._attempt_join(), timeout))
