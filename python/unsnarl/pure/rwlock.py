"""RWLock and its two sides.

Invariant: the first party in the queue cannot enter, or the queue is empty.
"""

# The classes of a family share their state.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import lock_timeout, task_timeout
from unsnarl.pure.descriptions import Named, public
from unsnarl.pure.parties import GRANTED, REFUSED, Waiter, block, make_mutex, suspend, wake

READ, WRITE = "read", "write"


class RWLock(Named):
    """A read/write lock for threads, tasks and greenlets; writers do not starve.

    `reader` and `writer` are its sides. It is not re-entrant, and any party may leave on behalf of another; leaving a
    side on which no party is raises `RuntimeError`. So does `acquire` without a timeout (seconds) in a thread whose own
    task is in the way: that wait could not end.
    Fairness: first come, first served; readers next to each other enter together, and a reader that arrives while any
    party waits queues behind it.
    Cancellation: a side that was granted to a cancelled waiter is left immediately, and the next waiter enters.
    """

    __slots__ = ("__weakref__", "_mutex", "_readers", "_reading", "_waiters", "_writer", "_writing")

    _mutex: Any
    _readers: int
    _reading: list[Any]
    _waiters: dict[Waiter, None]
    _writer: Any
    _writing: bool

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a lock that nobody holds."""
        lock = object.__new__(cls)
        lock._mutex = make_mutex()
        lock._readers = 0
        lock._reading = []
        lock._writing = False
        lock._writer = None
        lock._waiters = {}
        return lock

    def __init__(self) -> None:
        pass

    def _enter(self, side: str, who: Any) -> bool:
        """Enter without waiting, with the mutex held; for a task, if `who` is one."""
        if self._writing or (side == WRITE and self._readers):
            return False
        if side == WRITE:
            self._writing, self._writer = True, who
        else:
            self._readers += 1
            if who is not None:
                self._reading.append(who)
        return True

    def _try(self, side: str, who: Any) -> bool:
        with self._mutex:
            return not self._waiters and self._enter(side, who)

    def _begin(self, waiter: Waiter) -> bool:
        with self._mutex:
            if self._try(waiter.request, waiter.who):
                waiter.state = GRANTED
                return True
            self._waiters[waiter] = None
        return False

    def _resume(self, waiter: Waiter) -> bool:
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        with self._mutex:
            self._waiters.pop(waiter, None)
            if waiter.state == GRANTED:
                return True
            waiter.state = REFUSED
            woken = self._admit()
        wake(woken)
        return False

    def _give_back(self, waiter: Waiter) -> None:
        self._leave(waiter.request, waiter.who)

    def _admit(self) -> list[Waiter]:
        woken: list[Waiter] = []
        while self._waiters:
            first = next(iter(self._waiters))
            if not self._enter(first.request, first.who):
                break
            del self._waiters[first]
            first.state = GRANTED
            woken.append(first)
        return woken

    def _change(self, change: Callable[[], bool]) -> bool:
        with self._mutex:
            changed = change()
            woken = self._admit()
        wake(woken)
        return changed

    def _leave(self, side: str, who: Any) -> None:
        def leave() -> bool:
            if side == WRITE:
                was_inside, self._writing, self._writer = self._writing, False, None
                return was_inside
            if not self._readers:
                return False
            if who in self._reading:
                self._reading.remove(who)
            else:
                self._reading.clear()  # it may have left for any of the tasks
            self._readers -= 1
            return True

        if not self._change(leave):
            raise RuntimeError(f"release of a {side} lock that nobody holds")

    def _holders(self, side: str) -> list[Any]:
        return [self._writer] if side == READ else [self._writer, *self._reading]

    def _ahead(self, side: str) -> Iterator[Waiter]:
        """Yield those that enter before a new party on this side; another reader would enter with it."""
        return (waiter for waiter in list(self._waiters) if WRITE in (side, waiter.request))

    @property
    def reader(self) -> RWLockSide:
        """The side that many parties may hold together."""
        return RWLockSide(self, READ)

    @property
    def writer(self) -> RWLockSide:
        """The side that one party holds alone."""
        return RWLockSide(self, WRITE)

    def downgrade(self) -> None:
        """Turn the held write lock into a read lock; no writer enters in between."""

        def downgrade() -> bool:
            if not self._writing:
                return False
            writer, self._writing, self._writer = self._writer, False, None
            return self._enter(READ, writer)

        if not self._change(downgrade):
            raise RuntimeError("downgrade of a write lock that nobody holds")

    def try_upgrade(self) -> bool:
        """Turn the held read lock into the write lock, if no other party reads; never waits."""

        def upgrade() -> bool:
            if self._readers == 0:
                raise RuntimeError("upgrade of a read lock that nobody holds")
            if self._readers > 1:
                return False
            self._readers, self._writing = 0, True
            self._writer = self._reading.pop() if self._reading else None
            return True

        return self._change(upgrade)

    @property
    def readers(self) -> int:
        """Number of parties that read now."""
        return self._readers

    def locked(self) -> bool:
        """Return whether any party is inside."""
        return self._readers > 0 or self._writing

    @property
    def waiting(self) -> int:
        """Number of parties that wait."""
        return len(self._waiters)

    def statistics(self) -> dict[str, int]:
        """Describe the lock's state."""
        return {"readers": self._readers, "writing": self._writing, "waiting": self.waiting}


class RWLockSide(Named):
    """One side of a read/write lock.

    A lock with timeouts in seconds, for `with` and `async with`; fairness and cancellation are those of `RWLock`.
    """

    __slots__ = ("__weakref__", "_lock", "_side")

    def __init__(self, lock: RWLock, side: str) -> None:
        self._lock = lock
        self._side = side

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Enter; False if blocking is False and it cannot, or the timeout (seconds) passed first."""
        seconds = lock_timeout(blocking, timeout)
        if self._lock._try(self._side, None):
            return True
        if seconds is None:
            identity.refuse_deadlock(self._lock._holders(self._side), self._lock._ahead(self._side))
        return seconds != 0 and block(self._lock, seconds, self._side) is not None

    def release(self) -> None:
        """Leave; RuntimeError if no party is inside on this side."""
        lock = self._lock
        is_any_of_many = self._side == READ and lock._readers > 1 and lock._reading
        lock._leave(self._side, identity.task_if_any() if is_any_of_many else None)

    def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> Any:
        """Enter from a task; False if the timeout (seconds) passed first."""
        return self._async_acquire(task_timeout(timeout, blocking))

    async def _async_acquire(self, seconds: float | None) -> bool:
        who = identity.task_if_any()
        if self._lock._try(self._side, who):
            return True
        return seconds != 0 and await suspend(self._lock, seconds, who, self._side) is not None

    def async_release(self) -> None:
        """Leave."""
        self.release()

    def locked(self) -> bool:
        """Return whether any party is inside on this side."""
        return self._lock._writing if self._side == WRITE else self._lock._readers > 0

    @property
    def waiting(self) -> int:
        """Number of parties that wait for this side."""
        return sum(waiter.request == self._side for waiter in list(self._lock._waiters))

    def statistics(self) -> dict[str, int]:
        """Describe the side's state."""
        return {"locked": self.locked(), "waiting": self.waiting}

    def __enter__(self) -> bool:
        """Enter."""
        return self.acquire()

    def __exit__(self, *_args: object) -> None:
        """Leave."""
        self.release()

    async def __aenter__(self) -> None:
        """Enter from a task."""
        await self._async_acquire(None)

    async def __aexit__(self, *_args: object) -> None:
        """Leave."""
        self.release()

    green_acquire = acquire
    green_release = release


public(RWLock, RWLockSide)
