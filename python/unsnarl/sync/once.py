"""Once: run something exactly once, whoever comes first, and let the others wait.

Invariant: the function has run to its end, without an exception, before any
caller gets its value; after an exception the next caller tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

from unsnarl._native import Flag, Lock, RLock

T = TypeVar("T")


class Once(Generic[T]):
    """Compute a value on the first call; every caller gets that one.

    A call that would wait for itself raises RuntimeError: one from within the function, and one that stops the
    thread of a task which computes the value.
    Fairness: the first caller computes, the others wait in order of arrival.
    Cancellation: a cancelled waiter leaves; a cancelled computation counts as an
    exception, and the next caller computes.
    """

    __slots__ = ("__weakref__", "_badge", "_flag", "_lock")

    def __init__(self) -> None:
        self._flag = Flag()
        self._lock = Lock()
        self._badge: Any = None
        """Tells who computes, by its owner. Never released: a coroutine may be closed outside of its task."""

    def call(self, function: Callable[[], T]) -> T:
        """Return the value, calling `function()` if nobody has done so yet."""
        if not self._flag.is_set():
            self._refuse_deadlock("call")
            with self._lock:
                if not self._flag.is_set():
                    badge = RLock()
                    badge.acquire()
                    self._badge = badge
                    try:
                        self._flag.set(function())
                    finally:
                        self._badge = None
        return cast("T", self._flag.get())

    async def async_call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return the value, awaiting `function()` if nobody has done so yet."""
        if not self._flag.is_set():
            self._refuse_deadlock("async_call")
            async with self._lock:
                if not self._flag.is_set():
                    badge = RLock()
                    await badge.async_acquire()
                    self._badge = badge
                    try:
                        self._flag.set(await function())
                    finally:
                        self._badge = None
        return cast("T", self._flag.get())

    def is_done(self) -> bool:
        """Tell whether the value is there."""
        return self._flag.is_set()

    def _refuse_deadlock(self, method: str) -> None:
        badge = self._badge
        # A task also waits for itself in a loop that the function of its own thread or greenlet runs.
        if badge is not None and (badge._is_owned() or (method == "async_call" and badge._async_depth())):
            raise RuntimeError(f"deadlock: Once.{method}() from within the function that is to compute its value")
