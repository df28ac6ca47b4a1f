"""Waiting for a condition in a task: await the notification, then take the lock back.

Invariant: the coroutines end with the lock held as before, also when they are
cancelled; a notification that a cancelled task had already been given goes to
the next waiter (the native operation sees to that). Only one that is closed ends
without it, if somebody else has it; the release that follows then does nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from unsnarl._native import Operation
from unsnarl.sync.backends import running

T = TypeVar("T")


async def condition_wait(condition: Any, timeout: float | None = None) -> bool:
    """Wait for a notification; False if `timeout` (seconds) passed first."""
    lock = condition.lock
    depth = lock._async_depth() if hasattr(lock, "_async_depth") else 1
    operation, holding = condition._notified(timeout)
    is_closed = False
    try:
        try:
            return bool(await operation)
        except GeneratorExit:
            is_closed = True
            raise
        finally:
            if not (holding or is_closed):
                await take_back(lock, depth)
    except GeneratorExit:
        if not holding._leave(depth):
            await take_back(lock, depth)
        raise


async def take_back(lock: Any, depth: int) -> None:
    """Take the lock whatever happens; what was raised meanwhile is raised at the end."""
    with _shield():
        interruption = await _take(lock)
        if depth > 1:
            lock._deepen(depth)
    if interruption is not None:
        raise interruption


def _shield() -> AbstractContextManager[Any]:
    """Make a scope that cancellation does not enter, where there is one.

    anyio repeats a cancellation at each turn of asyncio's loop until the task has left the scope. What asyncio
    itself throws no scope keeps out.
    """
    backend = running.backend()
    if hasattr(backend, "shield"):
        scope: AbstractContextManager[Any] = backend.shield()
        return scope
    if "anyio._backends._asyncio" in sys.modules and backend is None and running.asyncio_task() is not None:
        anyio_scope: AbstractContextManager[Any] = sys.modules["anyio"].CancelScope(shield=True)
        return anyio_scope
    return nullcontext()


async def _take(lock: Any) -> BaseException | None:
    """Take the lock; what was raised meanwhile."""
    operation = lock.async_acquire()
    if isinstance(operation, Operation):
        operation._persist()
        await operation
        return operation._interruption()
    return await _take_stubbornly(lock, operation)


async def _take_stubbornly(lock: Any, operation: Any) -> BaseException | None:
    """Take a lock that does not keep a place: go back to the end of its queue after each interruption."""
    interruption: BaseException | None = None
    while True:
        # Outside of a task this raises, each time anew: not to be tried again.
        attempt = _Attempt(operation)
        try:
            await attempt
        except GeneratorExit:
            raise
        except BaseException as error:
            if not attempt.has_suspended:
                raise
            interruption = error
            operation = lock.async_acquire()
        else:
            return interruption


class _Attempt:
    """Await something, and know whether that suspended the task: what is raised before is no interruption."""

    __slots__ = ("_inner", "has_suspended")

    def __init__(self, awaitable: Any) -> None:
        self._inner = awaitable.__await__()
        self.has_suspended = False

    def __await__(self) -> _Attempt:
        return self

    def __iter__(self) -> _Attempt:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Go on; what is yielded suspends the task."""
        request = self._inner.send(value)
        self.has_suspended = True
        return request

    def throw(self, *error: Any) -> Any:
        """Raise in it."""
        return self._inner.throw(*error)

    def close(self) -> None:
        """End it."""
        self._inner.close()


async def condition_wait_for(condition: Any, predicate: Callable[[], T], timeout: float | None = None) -> T:
    """Wait until `predicate()` is true; its last value, which is false if time ran out."""
    clock = running.clock()
    deadline = None if timeout is None else clock() + timeout
    while True:
        result = predicate()
        if result:
            return result
        left = None
        if deadline is not None:
            left = deadline - clock()
            if left <= 0:
                return result
        # By its name: a subclass may have an `async_wait` of its own.
        await condition.async_wait(left)
