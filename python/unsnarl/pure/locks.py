"""Lock and RLock.

Invariant: a lock knows the task that holds it from the grant on, before the task runs, so that a thread which would
wait for its own task is refused.
"""

from __future__ import annotations

from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import lock_timeout, task_timeout
from unsnarl.pure.descriptions import Named, public
from unsnarl.pure.parties import Waiter, block, suspend, thread_number
from unsnarl.pure.permits import Permits


class Lock(Permits, Named):
    """A mutual exclusion lock for threads, tasks and greenlets.

    Any party may release it; `release` of a free lock raises `RuntimeError`. So does `acquire` without a timeout
    (seconds) in a thread whose own task holds the lock, or gets it first: that wait could not end.
    Fairness: first come, first served among waiters. A thread that need not wait may overtake a woken thread once;
    tasks and greenlets are always handed the lock.
    Cancellation: a waiter that leaves after it was granted the lock passes it to the next.
    """

    __slots__ = ("__weakref__", "_held", "_holder", "_waived")

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a free lock."""
        lock = object.__new__(cls)
        lock._start(1)
        return lock

    def __init__(self) -> None:
        pass

    def _start(self, free: int) -> None:
        super()._start(free)
        self._held: list[None] = []
        self._holder: Any = None
        self._waived: int | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire; False if blocking is False and the lock is held, or the timeout (seconds) passed first."""
        seconds = None if blocking is True and timeout == -1 else lock_timeout(blocking, timeout)
        return self._try() or (seconds != 0 and self._acquire_within(seconds))

    def _try(self) -> bool:
        try:
            self._held.append(self._free.pop())
        except IndexError:
            return False
        return True

    def _acquire_within(self, seconds: float | None) -> bool:
        if seconds is None:
            identity.refuse_deadlock([self._holder], self._waiters())
        return block(self, seconds) is not None

    def release(self) -> None:
        """Release the lock; RuntimeError if it is free."""
        try:
            self._held.pop()
        except IndexError:
            raise RuntimeError("release unlocked lock") from None
        self._holder = None
        if self._queue:
            self._put_back()
        else:
            self._free.append(None)
            if self._queue:
                self._serve()

    def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> Any:
        """Acquire in a task; False if the timeout (seconds) passed first."""
        return self._async_acquire(task_timeout(timeout, blocking), identity.task_if_any())

    async def _async_acquire(self, seconds: float | None, who: Any) -> bool:
        if who is None:
            who = identity.task()
        self._waived = None
        if not self._try():
            return seconds != 0 and await suspend(self, seconds, who) is not None
        self._holder = who
        return True

    def async_release(self) -> None:
        """Release the lock; RuntimeError if it is free."""
        if self._waived is not None and self._waived == thread_number():
            self._waived = None
            return
        self.release()

    def _taken(self, waiter: Waiter) -> None:
        self._held.append(None)
        self._holder = waiter.who

    def _give_back(self, _waiter: Waiter) -> None:
        self.release()

    def _leave(self, who: Any, _depth: int) -> None:
        """Hold the lock for a coroutine that is being closed, or let its release do nothing."""
        if self._try():
            self._holder = who
        else:
            self._waived = thread_number()

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return not self._free

    @property
    def waiting(self) -> int:
        """Number of parties that wait."""
        return self._waiting_count()

    def statistics(self) -> dict[str, int]:
        """Describe the lock's state."""
        return {"locked": self.locked(), "waiting": self.waiting}

    def __enter__(self) -> bool:
        """Acquire."""
        return self._try() or self._acquire_within(None)

    def __exit__(self, *_args: object) -> None:
        """Release."""
        self.release()

    async def __aenter__(self) -> None:
        """Acquire in a task."""
        await self._async_acquire(None, identity.task())

    async def __aexit__(self, *_args: object) -> None:
        """Release."""
        self.async_release()

    def _at_fork_reinit(self) -> None:
        self._start(1)

    def __repr__(self) -> str:
        """Return the state and the class."""
        state = "locked" if self.locked() else "unlocked"
        return f"<{state} unsnarl.{type(self).__name__} object at {id(self):#x}>"

    green_acquire = acquire_lock = acquire
    green_release = release_lock = release
    locked_lock = locked


class RLock(Permits, Named):
    """A re-entrant mutual exclusion lock for threads, tasks and greenlets.

    Its owner (a thread, a greenlet or, by `async with`, a task) may acquire it again; it is free when it was released
    as often. A thread and a task that runs in it are two owners. A release by any other party raises `RuntimeError`;
    but a lock that an ended task has left held is released by `__aexit__` and `async_release` anywhere.
    Fairness and cancellation: as `Lock`.
    """

    __slots__ = ("__weakref__", "_depth", "_owner", "_waived")

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a free lock."""
        lock = object.__new__(cls)
        lock._start(1)
        return lock

    def __init__(self) -> None:
        pass

    def _start(self, free: int) -> None:
        super()._start(free)
        self._owner: Any = None
        self._depth = 0
        self._waived: int | None = None

    def _try_take_for(self, who: Any) -> bool:
        if self._owner == who and who is not None:
            self._depth += 1
            return True
        try:
            self._free.pop()
        except IndexError:
            return False
        self._owner = who
        self._depth = 1
        return True

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire; False if blocking is False and another party owns it, or the timeout (seconds) passed first."""
        seconds = None if blocking is True and timeout == -1 else lock_timeout(blocking, timeout)
        return self._try_take_for(identity.caller()) or (seconds != 0 and self._acquire_within(seconds))

    def _acquire_within(self, seconds: float | None) -> bool:
        if seconds is None:
            identity.refuse_deadlock([self._owner], self._waiters())
        return block(self, seconds, identity.caller()) is not None

    def release(self) -> None:
        """Release once; RuntimeError if the caller does not own it."""
        self._release_for(identity.caller())

    def _release_for(self, who: Any) -> None:
        if self._owner is None or self._owner != who:
            raise RuntimeError("cannot release un-acquired lock")
        if self._depth > 1:
            self._depth -= 1
        else:
            self._put_down()

    def _put_down(self) -> None:
        self._owner = None
        self._depth = 0
        self._put_back()

    def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> Any:
        """Acquire in a task; False if the timeout (seconds) passed first."""
        return self._async_acquire(task_timeout(timeout, blocking), identity.task_if_any())

    async def _async_acquire(self, seconds: float | None, who: Any) -> bool:
        if who is None:
            who = identity.task()
        self._waived = None
        if self._try_take_for(who):
            return True
        return seconds != 0 and await suspend(self, seconds, who, who) is not None

    def async_release(self) -> None:
        """Release once for the running task; RuntimeError if it does not own the lock."""
        if self._waived is not None and self._waived == thread_number():
            self._waived = None
            return
        who, owner = identity.task_if_any(), self._owner
        self._release_for(owner if owner != who and identity.has_ended(owner) else who)

    def _taken(self, waiter: Waiter) -> None:
        self._owner = waiter.request
        self._depth = 1

    def _give_back(self, _waiter: Waiter) -> None:
        self._put_down()

    def _leave(self, who: Any, depth: int) -> None:
        """Hold the lock for a coroutine that is being closed, or let its release do nothing."""
        if self._try_take_for(who):
            self._depth = depth
        else:
            self._waived = thread_number()

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return not self._free

    @property
    def count(self) -> int:
        """How often its owner has acquired it."""
        return self._depth

    @property
    def waiting(self) -> int:
        """Number of parties that wait."""
        return self._waiting_count()

    def statistics(self) -> dict[str, int]:
        """Describe the lock's state."""
        return {"locked": self.locked(), "depth": self._depth, "waiting": self.waiting}

    def __enter__(self) -> bool:
        """Acquire."""
        return self._try_take_for(identity.caller()) or self._acquire_within(None)

    def __exit__(self, *_args: object) -> None:
        """Release once."""
        self.release()

    async def __aenter__(self) -> None:
        """Acquire in a task."""
        await self._async_acquire(None, identity.task())

    async def __aexit__(self, *_args: object) -> None:
        """Release once for the running task."""
        self.async_release()

    def _is_owned(self) -> bool:
        return self._owner is not None and bool(self._owner == identity.caller())

    def _recursion_count(self) -> int:
        return self._depth if self._is_owned() else 0

    def _release_save(self) -> tuple[int, Any]:
        if not self.locked():
            raise RuntimeError("cannot release un-acquired lock")
        state = self._depth, self._owner
        self._put_down()
        return state

    def _acquire_restore(self, state: tuple[int, Any]) -> None:
        depth, owner = state
        if not self._take():
            block(self, None, owner)
        self._depth, self._owner = depth, owner

    def _async_depth(self) -> int:
        return self._depth if self._owner is not None and self._owner == identity.task() else 0

    def _deepen(self, depth: int) -> None:
        self._depth = depth

    def _at_fork_reinit(self) -> None:
        self._start(1)

    def __repr__(self) -> str:
        """Return the state, the owner and the class."""
        state, kind = "locked" if self.locked() else "unlocked", type(self).__name__
        return f"<{state} unsnarl.{kind} object owner={self._owner} count={self._depth} at {id(self):#x}>"

    green_acquire = acquire
    green_release = release


public(Lock, RLock)
