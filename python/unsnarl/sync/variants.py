"""Primitives under names that aiologic has: aliases of unsnarl's classes, and small variations of them.

Loaded on first use. Invariant: waiting and waking are left to the base classes.
"""

from __future__ import annotations

from typing import TypeVar

from unsnarl._native import Barrier, BoundedSemaphore, CapacityLimiter, Event, LifoQueue

__all__ = [
    "BinarySemaphore",
    "BoundedBinarySemaphore",
    "RBarrier",
    "RCapacityLimiter",
    "REvent",
    "SimpleLifoQueue",
]

T = TypeVar("T")

REvent = Event
"""Another name of `Event`, which can be cleared."""

RBarrier = Barrier
"""Another name of `Barrier`, which can be used repeatedly, and reset."""


class BoundedBinarySemaphore(BoundedSemaphore):
    """A semaphore with one permit, free at first unless `initial_value` is 0.

    `ValueError` for another initial value, and for a release while the permit is free or of more than one.
    Fairness and cancellation: as `Lock`.
    """

    __module__ = "unsnarl"

    def __init__(self, initial_value: int = 1) -> None:
        if initial_value not in (0, 1):
            raise ValueError("initial_value must be 0 or 1")
        super().__init__(initial_value)
        self._initial_value = 1

    def release(self, n: int = 1) -> None:
        """Release the permit; ValueError if it is free."""
        if n != 1:
            raise ValueError("n must be 1")
        super().release()

    def green_release(self, n: int = 1) -> None:
        """Release the permit; as `release`."""
        self.release(n)

    def async_release(self, n: int = 1) -> None:
        """Release the permit; as `release`."""
        self.release(n)


class BinarySemaphore(BoundedBinarySemaphore):
    """A `BoundedBinarySemaphore` for which a release while the permit is free has no effect.

    `ValueError` for an initial value other than 0 and 1, and for a release of more than one.
    Fairness and cancellation: as `Lock`.
    """

    __module__ = "unsnarl"

    def release(self, n: int = 1) -> None:
        """Release the permit, unless it is free."""
        if n != 1:
            raise ValueError("n must be 1")
        try:
            super().release()
        except ValueError:
            pass

    async def __aexit__(self, *_args: object) -> None:
        """Release the permit; another party may have released it already."""
        self.release()


class SimpleLifoQueue(LifoQueue[T]):
    """An unbounded queue that returns the newest item first; its `put` never waits.

    Everything else, including fairness and cancellation: as `Queue`.
    """

    __module__ = "unsnarl"

    def __init__(self) -> None:  # pyright: ignore[reportInconsistentConstructor] -- as aiologic's, without a size
        super().__init__()


class RCapacityLimiter(CapacityLimiter):
    """A re-entrant limiter: a borrower's one token is free after as many releases as acquisitions.

    `RuntimeError` for a release by a party that holds no token. Acquiring again does not wait. Everything else,
    including fairness and cancellation: as `CapacityLimiter`.
    """

    __module__ = "unsnarl"

    def __init__(self, total_tokens: float = 1) -> None:
        super().__init__(total_tokens)
        # Acquisitions after the first, by borrower; each borrower changes only its own entry.
        self._again: dict[int, int] = {}

    def _deepen(self, borrower: int) -> bool:
        self._again[borrower] = self._again.get(borrower, 0) + 1
        return True

    def _is_shallower(self, borrower: int) -> bool:
        """Undo one acquisition, except the last."""
        depth = self._again.pop(borrower, 0)
        if depth > 1:
            self._again[borrower] = depth - 1
        return depth > 0

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Borrow a token, or acquire it again; False if none is free and not blocking, or after timeout (seconds)."""
        if self.green_borrowed():
            return self._deepen(self._green_borrower())
        taken = super().acquire(blocking, timeout)
        if taken:
            self._again.pop(self._green_borrower(), None)  # left by an earlier borrower with this number, now dead
        return taken

    def green_acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Borrow a token, or acquire it again; as `acquire`."""
        return self.acquire(blocking, timeout)

    def release(self) -> None:
        """Release once; RuntimeError if the caller holds no token."""
        if not self._is_shallower(self._green_borrower()):
            super().release()

    def green_release(self) -> None:
        """Release once; as `release`."""
        self.release()

    async def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> bool:
        """Borrow a token for the running task, or acquire it again; False after the timeout (seconds)."""
        if self.async_borrowed():
            return self._deepen(self._async_borrower())
        taken = await super().async_acquire(timeout, blocking)
        if taken:
            self._again.pop(self._async_borrower(), None)  # left by an earlier borrower with this number, now dead
        return taken

    def async_release(self) -> None:
        """Release once for the running task; RuntimeError if it holds no token."""
        if not self._is_shallower(self._async_releaser()):
            super().async_release()

    def green_count(self) -> int:
        """Return how often the calling thread or greenlet has acquired its token."""
        return self._again.get(self._green_borrower(), 0) + self.green_borrowed()

    def async_count(self) -> int:
        """Return how often the running task has acquired its token."""
        return self._again.get(self._async_borrower(), 0) + self.async_borrowed()

    def __enter__(self) -> bool:
        """Borrow a token, or acquire it again."""
        return self.acquire()

    def __exit__(self, *_args: object) -> None:
        """Release once."""
        self.release()

    async def __aenter__(self) -> None:
        """Borrow a token for the running task, or acquire it again."""
        await self.async_acquire()

    async def __aexit__(self, *_args: object) -> None:
        """Release once for the running task."""
        self.async_release()
