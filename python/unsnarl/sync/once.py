"""Once: the first caller computes a value, concurrent callers wait for it, and later callers get it immediately.

Invariant: a caller gets the value only after the function has returned without an exception; after an exception the
next caller computes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

from unsnarl._native import Flag, Lock, RLock

T = TypeVar("T")


class Once(Generic[T]):
    """Compute a value on the first call; every caller gets this value.

    A call that would deadlock raises RuntimeError: a call from within the function, or one that blocks the thread of
    the task which computes the value.
    Fairness: the first caller computes, the others wait in order of arrival.
    Cancellation: a cancelled waiter leaves; a cancelled computation counts as an
    exception, and the next caller computes.
    """

    __slots__ = ("__weakref__", "_badge", "_flag", "_lock")

    def __init__(self) -> None:
        self._flag = Flag()
        self._lock = Lock()
        self._badge: Any = None
        """Its owner is the computing party. Never released: a coroutine may be closed outside of its task."""

    def call(self, function: Callable[[], T]) -> T:
        """Return the value; calls `function()` if there is no value yet."""
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
        """Return the value; awaits `function()` if there is no value yet."""
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
        """Return whether the value has been computed."""
        return self._flag.is_set()

    def _refuse_deadlock(self, method: str) -> None:
        badge = self._badge
        # A task would also deadlock if the computing function runs the task's loop in its own thread or greenlet.
        if badge is not None and (badge._is_owned() or (method == "async_call" and badge._async_depth())):
            raise RuntimeError(f"deadlock: Once.{method}() from within the function that is to compute its value")
