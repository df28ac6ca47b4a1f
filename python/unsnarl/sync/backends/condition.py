"""Wait of a task on a condition: awaits the notification, then acquires the lock again.

Invariant: the coroutines end with the lock held as before, also if they are cancelled. A notification that a cancelled
task had received goes to the next waiter; the native operation does that. Only a coroutine that is closed may end
without the lock, if another party holds it; the release that follows then has no effect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

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
    """Acquire the lock without fail; an exception raised during the wait is raised afterwards."""
    with _shield():
        interruption = await _take(lock)
        if depth > 1:
            lock._deepen(depth)
    if interruption is not None:
        raise interruption


def _shield() -> AbstractContextManager[Any]:
    """Return a scope that shields from cancellation, where the library has one.

    anyio repeats a cancellation in each iteration of asyncio's loop until the task has left the scope. No scope
    shields from what asyncio itself throws.
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
    """Acquire the lock; return the exception that was raised during the wait."""
    operation = lock.async_acquire()
    if hasattr(operation, "_persist"):  # a native one
        operation._persist()
        await operation
        interruption: BaseException | None = operation._interruption()
        return interruption
    return await _take_stubbornly(lock, operation)


async def _take_stubbornly(lock: Any, operation: Any) -> BaseException | None:
    """Acquire a lock whose wait cannot persist: after each interruption wait again, at the end of its queue."""
    interruption: BaseException | None = None
    while True:
        # Outside of a task this raises every time, so that trying again would not end.
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
    """Awaits an object and records whether the task was suspended: an earlier exception is no interruption."""

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
        """Continue; a yielded value suspends the task."""
        request = self._inner.send(value)
        self.has_suspended = True
        return request

    def throw(self, *error: Any) -> Any:
        """Raise in the awaited object."""
        return self._inner.throw(*error)

    def close(self) -> None:
        """Close the awaited object."""
        self._inner.close()


async def condition_wait_for(condition: Any, predicate: Callable[[], T], timeout: float | None = None) -> T:
    """Wait until `predicate()` is true; return its last value, which is false after the timeout."""
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
        # Called by name: a subclass may override `async_wait`.
        await condition.async_wait(left)
