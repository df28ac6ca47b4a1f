"""Condition.

A notified party wakes up and acquires the lock again by itself.

Invariants: a wait ends with the lock held as before, whatever was raised meanwhile; only a coroutine that is closed may
end without. A notification of a party that is interrupted goes to the next one.
"""

# The classes of a family share their state.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from unsnarl.pure import identity
from unsnarl.pure.arguments import count, task_timeout, wait_timeout
from unsnarl.pure.descriptions import Named, deprecated, public
from unsnarl.pure.locks import Lock, RLock
from unsnarl.pure.parties import (
    GRANTED,
    REFUSED,
    Waiter,
    abandon,
    block,
    green_waiter,
    make_mutex,
    rest,
    sleep,
    task_waiter,
    wake,
)

T = TypeVar("T")


class _Waiters:
    """The attribute `_waiters`, which programs read to count those that wait: one item for each party.

    It cannot be set, but an object of a subclass may have one of its own instead.
    """

    def __get__(self, condition: Any, kind: Any = None) -> Any:
        return self if condition is None else (None,) * len(condition._parked)


class Condition(Named):
    """A condition variable for threads, tasks and greenlets.

    Its lock is an `RLock`, or the one that it is given. Fairness: `notify` wakes the party that has waited longest.
    Cancellation: a cancelled waiter has acquired the lock again when it raises. Timeouts are in seconds.
    """

    __slots__ = ("__weakref__", "_guard", "_mutex", "_parked")

    _waiters = _Waiters()
    _guard: Any
    _mutex: Any
    _parked: dict[Waiter, None]

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a condition without a lock, until `__init__` runs."""
        condition = object.__new__(cls)
        condition._guard = None
        condition._mutex = make_mutex()
        condition._parked = {}
        return condition

    def __init__(self, lock: Any = None) -> None:
        if self._guard is None:
            self._guard = RLock() if lock is None else lock

    @property
    def lock(self) -> Any:
        """The lock."""
        if self._guard is None:
            raise RuntimeError("Condition.__init__() was not called")
        return self._guard

    @property
    def _lock(self) -> Any:
        return self.lock

    def _resume(self, waiter: Waiter) -> bool:
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        with self._mutex:
            self._parked.pop(waiter, None)
            if waiter.state != GRANTED:
                waiter.state = REFUSED
            return waiter.state == GRANTED

    def _give_back(self, _waiter: Waiter) -> None:
        self._pass_on(1)

    def _pass_on(self, number: int) -> None:
        """Notify up to this many parties."""
        woken: list[Waiter] = []
        with self._mutex:
            while self._parked and len(woken) < number:
                first = next(iter(self._parked))
                del self._parked[first]
                first.state = GRANTED
                woken.append(first)
        wake(woken)

    def _is_owned(self) -> bool:
        """Return whether the calling thread or greenlet holds the lock; one that cannot be acquired counts as held."""
        lock = self.lock
        if isinstance(lock, Lock):
            return lock.locked()
        if hasattr(lock, "_is_owned"):
            return bool(lock._is_owned())
        if lock.acquire(False):
            lock.release()
            return False
        return True

    def _is_owned_by_task(self) -> bool:
        lock = self.lock
        return lock._async_depth() > 0 if isinstance(lock, RLock) else self._is_owned()

    def _release_save(self) -> Any:
        lock = self.lock
        return lock._release_save() if hasattr(lock, "_release_save") else lock.release()

    def _acquire_restore(self, state: Any) -> Any:
        lock = self.lock
        if hasattr(lock, "_acquire_restore"):
            return lock._acquire_restore(state)
        if not isinstance(lock, Lock):
            return lock.acquire()
        return lock._try() or block(lock, None)  # without a check: a wait ends with the lock held

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock and wait for a notification; False if the timeout (seconds) passed first."""
        seconds = wait_timeout(timeout)
        if not self._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = green_waiter(self)
        with self._mutex:
            self._parked[waiter] = None
        try:
            state = self._release_save()
        except BaseException:
            abandon(waiter)
            raise
        try:
            return sleep(waiter, seconds)
        finally:
            self._regain(state)

    def _regain(self, state: Any) -> None:
        """Acquire the lock again; what a signal handler raises meanwhile is raised afterwards."""
        interruption: BaseException | None = None
        while True:
            try:
                self._acquire_restore(state)
                break
            except BaseException as error:
                if not isinstance(self._guard, (Lock, RLock)):
                    raise
                interruption = interruption or error
        if interruption is not None:
            raise interruption

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until `predicate()` is true; return its last value, which is false after the timeout (seconds)."""
        import time

        left, deadline = timeout, None
        result = predicate()
        while not result:
            if timeout is not None:
                if deadline is None:
                    deadline = time.monotonic() + (wait_timeout(timeout) or 0.0)
                else:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        break
            self.wait(left)
            result = predicate()
        return result

    def green_wait(self, timeout: float | None = None) -> bool:
        """Release the lock and wait for a notification; as `wait`."""
        return self.wait(timeout)

    def _notified(self, timeout: float | None = None) -> tuple[Coroutine[Any, Any, bool], Holding]:
        """Return a wait that releases the lock, and whether it is held; `backends.condition` acquires it again."""
        lock = self.lock
        if not (isinstance(lock, (Lock, RLock)) or hasattr(lock, "async_acquire")):
            raise TypeError(
                "a task cannot wait with this condition: its lock has no async_acquire(); make it of unsnarl's own"
            )
        if not self._is_owned_by_task():
            raise RuntimeError("cannot wait on un-acquired lock")
        holding = Holding(lock, identity.task())
        return self._await_notification(task_timeout(timeout), holding), holding

    async def _await_notification(self, seconds: float | None, holding: Holding) -> bool:
        waiter = task_waiter(self, holding.who)
        with self._mutex:
            self._parked[waiter] = None
        try:
            self._release_save()
        except BaseException:
            abandon(waiter)
            raise
        holding.is_held = False
        return await rest(waiter, seconds)

    def async_wait(self, timeout: float | None = None) -> Coroutine[Any, Any, bool]:
        """Wait in a task for a notification; False if the timeout (seconds) passed first."""
        from unsnarl.sync.backends import condition_wait

        return condition_wait(self, timeout)

    def async_wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> Coroutine[Any, Any, T]:
        """Wait in a task until `predicate()` is true; return its last value."""
        from unsnarl.sync.backends import condition_wait_for

        return condition_wait_for(self, predicate, timeout)

    def __await__(self) -> Generator[Any, Any, bool]:
        """Wait in a task for a notification."""
        return self.async_wait().__await__()

    def notify(self, n: int = 1) -> None:
        """Notify up to n parties, the longest waiting first."""
        owned = self._is_owned()
        if not owned and isinstance(self._guard, RLock):
            owned = identity.task_if_any() is not None and self._is_owned_by_task()
        if not owned:
            raise RuntimeError("cannot notify on un-acquired lock")
        self._pass_on(count(n))

    def notify_all(self) -> None:
        """Notify every party that waits."""
        self.notify(len(self._parked))

    def notifyAll(self) -> None:  # noqa: N802 - the standard library's name
        """Notify every party that waits, with a warning."""
        deprecated("notifyAll() is deprecated, use notify_all() instead")
        self.notify_all()

    def acquire(self, *args: Any, **kwargs: Any) -> Any:
        """Acquire the lock, as its own `acquire` does."""
        return self.lock.acquire(*args, **kwargs)

    def release(self) -> Any:
        """Release the lock."""
        return self.lock.release()

    def locked(self) -> Any:
        """Return whether the lock is held."""
        return self.lock.locked()

    @property
    def waiting(self) -> int:
        """Number of parties that wait for a notification."""
        return len(self._parked)

    def statistics(self) -> dict[str, int]:
        """Describe the condition's state."""
        return {"waiting": self.waiting}

    def __enter__(self) -> Any:
        """Acquire the lock."""
        return self.lock.__enter__()

    def __exit__(self, *args: object) -> Any:
        """Release the lock."""
        return self.lock.__exit__(*args)

    def __aenter__(self) -> Any:
        """Acquire the lock in a task."""
        return self.lock.__aenter__()

    def __aexit__(self, *_args: object) -> Any:
        """Release the lock."""
        return self.lock.__aexit__(None, None, None)

    def _at_fork_reinit(self) -> None:
        self._parked = {}
        self.lock._at_fork_reinit()

    def __repr__(self) -> str:
        """Return the lock and the number of parties that wait."""
        return f"<Condition({self.lock!r}, {self.waiting})>"


class Holding:
    """Whether the lock of a task's wait is held."""

    __slots__ = ("_lock", "is_held", "who")

    def __init__(self, lock: Any, who: Any) -> None:
        self._lock = lock
        self.who = who
        self.is_held = True

    def __bool__(self) -> bool:
        """Return whether the lock is held."""
        return self.is_held

    def _leave(self, depth: int) -> bool:
        """Close the coroutine, which cannot wait for the lock; False if the lock is not one of ours."""
        if not self.is_held and not isinstance(self._lock, (Lock, RLock)):
            return False
        if not self.is_held:
            self._lock._leave(self.who, depth)
            self.is_held = True
        return True


public(Condition)
