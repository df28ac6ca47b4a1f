"""The parties that can wait: threads, greenlets, and tasks of asyncio, trio and curio.

Every party sleeps in a *parker*: `park(timeout)` suspends it until `unpark()`, which any thread may call. The parkers
of greenlets, trio and curio are those of :mod:`unsnarl.sync.backends`; a thread's and asyncio's are here.

A *core* is an object with a queue of waiters. :func:`block` and :func:`suspend` let a party wait in a core that has:

| method | what it does |
|---|---|
| `_begin(waiter)` | enqueues the waiter, unless it need not wait: then True |
| `_resume(waiter)` | after a wake-up: True if the wait has ended; otherwise the waiter keeps its place |
| `_cancel(waiter)` | removes the waiter; True if it had been granted what it waited for |
| `_give_back(waiter)` | passes on what a waiter was granted that is not going to use it |
| `_withdraw(waiter)` | as `_cancel`, for a party that is interrupted, where that makes a difference |

Invariants: a core's mutex is re-entrant and is never held while a party is woken, so a signal handler or a finalizer
may call any method. What was granted to a party that is interrupted, cancelled, closed or out of time goes to the next.

Limit: a signal handler that raises between two steps of a call that does not wait can leave that call half-done, as in
the standard library's own classes in Python.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

WAITING, NOTIFIED, GRANTED, REFUSED = range(4)
"""In the queue; re-checks as soon as it runs; owns what it waited for; ends without success."""


def _unpatched(name: str) -> Any:
    """Return a function of `_thread`, also if gevent or eventlet has put one of its own in its place."""
    if "gevent.monkey" in sys.modules:
        return sys.modules["gevent.monkey"].get_original("_thread", name)
    if "eventlet.patcher" in sys.modules:
        return getattr(sys.modules["eventlet.patcher"].original("_thread"), name)
    import _thread

    return getattr(_thread, name)


allocate_lock: Any = _unpatched("allocate_lock")
thread_number: Any = _unpatched("get_ident")
make_mutex: Any = _unpatched("RLock")


forks = 0
"""How many forks lie between this process and the first that loaded this module."""


def _count_fork() -> None:
    global forks
    forks += 1


os.register_at_fork(after_in_child=_count_fork)


class ThreadParker:
    """Suspends the calling thread on a lock that only `unpark` releases."""

    __slots__ = ("_deadline", "_lock")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self._deadline: float | None = None

    def park(self, timeout: float | None) -> bool:
        """Sleep until unparked or timed out (seconds, from the first call); return whether it timed out."""
        if timeout is None:
            self._lock.acquire()
            return False
        if self._deadline is None:
            self._deadline = time.monotonic() + timeout
        else:
            timeout = self._deadline - time.monotonic()
        return not self._lock.acquire(True, max(0.0, timeout))

    def unpark(self) -> bool:
        """End the current sleep, or else the next one."""
        try:
            self._lock.release()
        except RuntimeError:  # unparked already
            pass
        return True


class AsyncioParker:
    """Suspends the running task of asyncio on a future of its loop."""

    __slots__ = ("_current_task", "_deadline", "_future", "_is_unparked", "_loop")

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._current_task = asyncio.current_task
        if self._current_task() is None:
            raise RuntimeError("only a task can wait here")
        self._deadline: float | None = None
        self._future: Any = None
        self._is_unparked = False

    async def park(self, timeout: float | None) -> bool:
        """Suspend until unparked or timed out by the loop's clock; return whether it timed out."""
        future = self._future = self._loop.create_future()
        timer = None
        try:
            if self._is_unparked:  # set before `_future` was read, or else `unpark` sees the future
                return False
            if timeout is not None:
                if self._deadline is None:
                    self._deadline = self._loop.time() + timeout
                timer = self._loop.call_at(self._deadline, _resolve, future, True)
            return bool(await future)
        finally:
            self._future = None
            self._is_unparked = False
            if timer is not None:
                timer.cancel()

    def unpark(self) -> bool:
        """End the current suspension, or else the next; False if the loop is closed, so that the task never runs."""
        self._is_unparked = True
        future = self._future
        if future is None:
            return not self._loop.is_closed()
        try:
            # Outside of a task a signal handler may have interrupted the loop's sleep, which only a write ends.
            if self._runs_a_task():
                _resolve(future, False)
            else:
                self._loop.call_soon_threadsafe(_resolve, future, False)
        except RuntimeError:
            return not self._loop.is_closed()
        return True

    def _runs_a_task(self) -> bool:
        try:
            return self._current_task() is not None and self._current_task(self._loop) is self._current_task()
        except RuntimeError:
            return False


def _resolve(future: Any, timed_out: bool) -> None:
    if not future.done():
        future.set_result(timed_out)


class Waiter:
    """One party in the queue of a core.

    Attributes:
        core: what it waits in.
        parker: where it sleeps.
        may_pause: it may run a signal handler before it re-checks, so others must not wait for it: the main thread.
        state: one of the four states; written with the core's mutex held.
        must_grant: it is handed what it waits for, since others could overtake it for ever: any but a thread.
        who: the task that waits, as `identity.task()` has it; None for threads and greenlets.
        request: what it waits for, where a core has several things.
        result: what it got.
        forks: the count when it was made. In a child it waits no more: its thread, or its loop's, is not there.
    """

    __slots__ = ("core", "forks", "may_pause", "must_grant", "parker", "request", "result", "state", "who")

    def __init__(self, core: Any, parker: Any, must_grant: bool, who: Any, request: Any) -> None:
        self.core = core
        self.parker = parker
        self.must_grant = must_grant
        self.may_pause = False
        self.who = who
        self.request = request
        self.result: Any = None
        self.state = WAITING
        self.forks = forks

    def unpark(self) -> bool:
        """Wake the party; False if it will never run."""
        return self.forks == forks and self.parker.unpark() is not False


def wake(waiters: Iterable[Waiter]) -> None:
    """Wake parties; called without any mutex. What was granted to one that will never run goes to the next."""
    for waiter in waiters:
        if not waiter.unpark() and waiter.core._cancel(waiter):
            waiter.core._give_back(waiter)


def has_hubs() -> bool:
    """Return whether the calling thread may have a hub of greenlets."""
    return "gevent" in sys.modules or "eventlet" in sys.modules


def green_waiter(core: Any, request: Any = None) -> Waiter:
    """Return a waiter for the calling thread or greenlet."""
    if has_hubs():
        from unsnarl.sync.backends import green_parker

        parker = green_parker()
        if parker is not None:
            return Waiter(core, parker, True, None, request)
    waiter = Waiter(core, ThreadParker(), False, None, request)
    waiter.may_pause = thread_number() == threading.main_thread().ident
    return waiter


def task_waiter(core: Any, who: Any, request: Any = None) -> Waiter:
    """Return a waiter for the running task."""
    from unsnarl.sync.backends import task_parker

    return Waiter(core, task_parker() or AsyncioParker(), True, who, request)


def sleep(waiter: Waiter, timeout: float | None) -> bool:
    """Let a thread or greenlet sleep until its wait ends; False if the timeout (seconds) passed first."""
    core, park = waiter.core, waiter.parker.park
    try:
        while True:
            timed_out = park(timeout)
            if core._resume(waiter):
                return True
            if waiter.state == REFUSED:
                return False
            if timed_out:
                return bool(core._cancel(waiter))
    except BaseException:
        abandon(waiter)
        raise


async def rest(waiter: Waiter, timeout: float | None) -> bool:
    """Suspend a task until its wait ends; False if the timeout (seconds) passed first."""
    core, park = waiter.core, waiter.parker.park
    try:
        while True:
            timed_out = await park(timeout)
            if core._resume(waiter):
                return True
            if waiter.state == REFUSED:
                return False
            if timed_out:
                return bool(core._cancel(waiter))
    except BaseException:
        abandon(waiter)
        raise


def abandon(waiter: Waiter) -> None:
    """Remove a waiter whose party is interrupted, and pass on what it was granted."""
    core = waiter.core
    withdraw = getattr(core, "_withdraw", core._cancel)
    if withdraw(waiter):
        core._give_back(waiter)


def block(core: Any, timeout: float | None, request: Any = None) -> Waiter | None:
    """Wait in a thread or greenlet; None if the timeout (seconds) passed first."""
    waiter = green_waiter(core, request)
    try:
        ready = core._begin(waiter)
    except BaseException:
        abandon(waiter)
        raise
    return waiter if ready or sleep(waiter, timeout) else None


async def suspend(core: Any, timeout: float | None, who: Any, request: Any = None) -> Waiter | None:
    """Wait in a task; None if the timeout (seconds) passed first."""
    waiter = task_waiter(core, who, request)
    try:
        ready = core._begin(waiter)
    except BaseException:
        abandon(waiter)
        raise
    return waiter if ready or await rest(waiter, timeout) else None
