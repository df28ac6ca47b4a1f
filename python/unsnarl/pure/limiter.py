"""CapacityLimiter: tokens that belong to their borrowers.

Invariant: a token is free only if no party waits for one.
"""

from __future__ import annotations

import math
from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import count, limiter_timeout, task_timeout
from unsnarl.pure.descriptions import Named, public
from unsnarl.pure.parties import GRANTED, REFUSED, Waiter, block, make_mutex, suspend, wake


def _tokens(total: Any) -> float:
    if isinstance(total, float):
        if total != math.inf:
            raise TypeError("total_tokens must be an int or math.inf")
        return total
    if count(total) < 0:
        raise ValueError("total_tokens must be >= 0")
    return count(total)


class CapacityLimiter(Named):
    """A limit on the number of threads, tasks and greenlets that do something concurrently.

    A token belongs to its borrower; `total_tokens` can be set at any time. Borrowing twice, or returning a token
    without having one, raises `RuntimeError`. Threads, greenlets and tasks are different borrowers; a token that an
    ended task has left is returned by `__aexit__` and `async_release` anywhere. `acquire` without a timeout (seconds)
    raises it too if each token is held by a task of the calling thread: that wait could not end.
    Fairness: first come, first served; tokens are handed over, no party overtakes.
    Cancellation: a token granted to a cancelled waiter goes to the next.
    """

    __slots__ = ("__weakref__", "_holders", "_mutex", "_total", "_waiters")

    _holders: dict[Any, None]
    _mutex: Any
    _total: float
    _waiters: dict[Any, Waiter]

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a limiter with one token, until `__init__` runs."""
        limiter = object.__new__(cls)
        limiter._mutex = make_mutex()
        limiter._holders = {}
        limiter._waiters = {}
        limiter._total = 1
        return limiter

    def __init__(self, total_tokens: float = 1) -> None:
        self.total_tokens = total_tokens

    def _borrow(self, who: Any) -> bool:
        """Borrow without waiting, with the mutex held."""
        if who in self._holders or who in self._waiters:
            raise RuntimeError("this borrower already holds one of the limiter's tokens, or waits for one")
        if len(self._holders) < self._total and not self._waiters:
            self._holders[who] = None
            return True
        return False

    def _try(self, who: Any) -> bool:
        with self._mutex:
            return self._borrow(who)

    def _begin(self, waiter: Waiter) -> bool:
        with self._mutex:
            if self._borrow(waiter.request):
                waiter.state = GRANTED
                return True
            self._waiters[waiter.request] = waiter
        return False

    def _resume(self, waiter: Waiter) -> bool:
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        with self._mutex:
            if self._waiters.get(waiter.request) is waiter:
                del self._waiters[waiter.request]
            if waiter.state != GRANTED:
                waiter.state = REFUSED
            return waiter.state == GRANTED

    def _give_back(self, waiter: Waiter) -> None:
        self._return(waiter.request)

    def _return(self, who: Any) -> None:
        with self._mutex:
            if who not in self._holders:
                raise RuntimeError("this borrower holds none of the limiter's tokens")
            del self._holders[who]
            woken = self._grant_waiters()
        wake(woken)

    def _grant_waiters(self) -> list[Waiter]:
        woken: list[Waiter] = []
        while self._waiters and len(self._holders) < self._total:
            first = self._waiters.pop(next(iter(self._waiters)))
            self._holders[first.request] = None
            first.state = GRANTED
            woken.append(first)
        return woken

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Borrow a token; False if blocking is False and none is free, or the timeout (seconds) passed first."""
        seconds = limiter_timeout(blocking, timeout)
        who = identity.caller()
        if self._try(who):
            return True
        if seconds is None:
            self._refuse_deadlock()
        return seconds != 0 and block(self, seconds, who) is not None

    def _refuse_deadlock(self) -> None:
        holders = list(self._holders)
        names = [identity.stuck_name(holder) for holder in holders]
        if holders and len(holders) >= self._total and all(names):
            listed = ", ".join(name for name in names if name)
            raise identity.deadlock(f"every token is held by a task of this thread ({listed}), which")

    def release(self) -> None:
        """Return the caller's token; RuntimeError if it has none."""
        self._return(identity.caller())

    def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> Any:
        """Borrow a token for the running task; False if the timeout (seconds) passed first."""
        return self._async_acquire(task_timeout(timeout, blocking), identity.task_if_any())

    async def _async_acquire(self, seconds: float | None, who: Any) -> bool:
        if who is None:
            who = identity.task()
        if self._try(who):
            return True
        return seconds != 0 and await suspend(self, seconds, who, who) is not None

    def async_release(self) -> None:
        """Return the running task's token; RuntimeError if it has none."""
        self._return(self._async_releaser())

    def green_borrowed(self) -> bool:
        """Return whether the calling thread or greenlet holds a token."""
        return identity.caller() in self._holders

    def async_borrowed(self) -> bool:
        """Return whether the running task holds a token."""
        return identity.task() in self._holders

    def _green_borrower(self) -> Any:
        return identity.caller()

    def _async_borrower(self) -> Any:
        return identity.task()

    def _async_releaser(self) -> Any:
        """Return the running task if it holds a token, or else an ended task that does."""
        who = identity.task_if_any()
        if who in self._holders:
            return who
        ended = (holder for holder in list(self._holders) if identity.has_ended(holder))
        return next(ended, who)

    def __enter__(self) -> bool:
        """Borrow a token."""
        return self.acquire()

    def __exit__(self, *_args: object) -> None:
        """Return the token."""
        self.release()

    async def __aenter__(self) -> None:
        """Borrow a token for the running task."""
        await self._async_acquire(None, identity.task())

    async def __aexit__(self, *_args: object) -> None:
        """Return the running task's token."""
        self.async_release()

    @property
    def total_tokens(self) -> float:
        """Number of tokens, `math.inf` for no limit; fewer than are borrowed is allowed."""
        return self._total

    @total_tokens.setter
    def total_tokens(self, total: float) -> None:
        with self._mutex:
            self._total = _tokens(total)
            woken = self._grant_waiters()
        wake(woken)

    @property
    def borrowed_tokens(self) -> int:
        """Number of tokens that are borrowed."""
        return len(self._holders)

    @property
    def available_tokens(self) -> float:
        """Number of tokens that can be borrowed now."""
        return max(0, self._total - len(self._holders))

    @property
    def waiting(self) -> int:
        """Number of parties that wait."""
        return len(self._waiters)

    def statistics(self) -> dict[str, Any]:
        """Describe the limiter's state."""
        return {
            "total_tokens": self._total,
            "borrowed_tokens": len(self._holders),
            "waiting": len(self._waiters),
            "borrowers": list(self._holders),
        }

    green_acquire = acquire
    green_release = release


public(CapacityLimiter)
