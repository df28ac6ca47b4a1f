"""Once: run something exactly once, whoever comes first, and let the others wait.

Invariant: the function has run to its end, without an exception, before any
caller gets its value; after an exception the next caller tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, cast

from unsnarl._native import Flag, Lock

T = TypeVar("T")


class Once(Generic[T]):
    """Compute a value on the first call; every caller gets that one.

    Fairness: the first caller computes, the others wait in order of arrival.
    Cancellation: a cancelled waiter leaves; a cancelled computation counts as an
    exception, and the next caller computes.
    """

    __slots__ = ("__weakref__", "_flag", "_lock")

    def __init__(self) -> None:
        self._flag = Flag()
        self._lock = Lock()

    def call(self, function: Callable[[], T]) -> T:
        """Return the value, calling `function()` if nobody has done so yet."""
        if not self._flag.is_set():
            with self._lock:
                if not self._flag.is_set():
                    self._flag.set(function())
        return cast("T", self._flag.get())

    async def async_call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return the value, awaiting `function()` if nobody has done so yet."""
        if not self._flag.is_set():
            async with self._lock:
                if not self._flag.is_set():
                    self._flag.set(await function())
        return cast("T", self._flag.get())

    def is_done(self) -> bool:
        """Tell whether the value is there."""
        return self._flag.is_set()
