"""Semaphore and BoundedSemaphore.

Invariant: at most `bound` permits are free; a release beyond it changes nothing.
"""

from __future__ import annotations

from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import UNBOUNDED, count, is_too_long, semaphore_timeout, task_timeout, wait_timeout
from unsnarl.pure.descriptions import Named, public
from unsnarl.pure.parties import Waiter, block, suspend
from unsnarl.pure.permits import Permits


class Semaphore(Permits, Named):
    """A counter of permits for threads, tasks and greenlets.

    `acquire` takes one permit, `release(n)` returns n; `value` is the number of free permits, and `max_value` the most
    that there may be. `ValueError` for a negative initial value, for n below one and for a release beyond `max_value`.
    Fairness and cancellation: as `Lock`.
    """

    __slots__ = ("__weakref__", "_bound")

    _bound: int

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a semaphore with one permit and no bound, until `__init__` runs."""
        semaphore = object.__new__(cls)
        semaphore._start(1)
        semaphore._bound = UNBOUNDED
        return semaphore

    def __init__(self, value: float = 1, max_value: float | None = None) -> None:
        self._begin_with(count(value), None if max_value is None else count(max_value))

    def _begin_with(self, value: int, bound: int | None) -> None:
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        if bound is not None and bound < value:
            raise ValueError("max_value must be >= the initial value")
        self._bound = UNBOUNDED if bound is None else bound
        self._restart(value)

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit; False if blocking is False and none is free, or the timeout (seconds) passed first."""
        seconds = None
        if not (blocking is True and (timeout is None or is_too_long(timeout))):
            seconds = semaphore_timeout(blocking, timeout)
        return self._take() or self._acquire_within(seconds, timeout)

    def _acquire_within(self, seconds: float | None, timeout: float | None) -> bool:
        if seconds is None:
            seconds = wait_timeout(timeout)
        return seconds != 0 and block(self, seconds) is not None

    def release(self, n: int = 1) -> None:
        """Return n permits; ValueError beyond the bound."""
        number = count(n)
        if number < 1:
            raise ValueError("n must be one or more")
        if self._bound == UNBOUNDED:
            self._put_back(min(number, UNBOUNDED - self._free_count()))
            return
        woken: list[Waiter] = []
        with self._mutex:
            if self._free_count() + number > self._bound:
                raise ValueError("Semaphore released too many times")
            self._add(number - self._grant_up_to(number, woken))
        self._finish(woken)

    def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> Any:
        """Take a permit in a task; False if the timeout (seconds) passed first."""
        return self._async_acquire(task_timeout(timeout, blocking))

    async def _async_acquire(self, seconds: float | None) -> bool:
        if self._take():
            return True
        return seconds != 0 and await suspend(self, seconds, identity.task_if_any()) is not None

    def async_release(self, n: int = 1) -> None:
        """Return n permits; ValueError beyond the bound."""
        self.release(n)

    def green_release(self, n: int = 1) -> None:
        """Return n permits; ValueError beyond the bound."""
        self.release(n)

    def locked(self) -> bool:
        """Return whether no permit is free."""
        return self._free_count() == 0

    @property
    def value(self) -> int:
        """Number of free permits."""
        return self._free_count()

    @property
    def _value(self) -> int:
        return self._free_count()

    @property
    def waiting(self) -> int:
        """Number of parties that wait."""
        return self._waiting_count()

    def statistics(self) -> dict[str, int]:
        """Describe the semaphore's state."""
        return {"value": self.value, "waiting": self.waiting}

    def __enter__(self) -> bool:
        """Take a permit."""
        return self._take() or self.acquire()

    def __exit__(self, *_args: object) -> None:
        """Return the permit."""
        self.release()

    async def __aenter__(self) -> None:
        """Take a permit in a task."""
        await self._async_acquire(None)

    async def __aexit__(self, *_args: object) -> None:
        """Return the permit."""
        self.release()

    def __repr__(self) -> str:
        """Return the class and the number of permits."""
        bound = "" if self._bound == UNBOUNDED else f"/{self._bound}"
        return self._show(f"value={self.value}{bound}")

    green_acquire = acquire


class BoundedSemaphore(Semaphore):
    """A semaphore that refuses to be released more often than it was acquired.

    The bound is `max_value` or else the initial value: a release beyond it raises `ValueError`.
    Fairness and cancellation: as `Lock`.
    """

    __slots__ = ()

    def __init__(self, value: float = 1, max_value: float | None = None) -> None:
        self._begin_with(count(value), count(value if max_value is None else max_value))

    @property
    def _initial_value(self) -> int:
        return self._bound

    @_initial_value.setter
    def _initial_value(self, bound: float) -> None:
        self._bound = max(0, count(bound))


public(Semaphore, BoundedSemaphore)
