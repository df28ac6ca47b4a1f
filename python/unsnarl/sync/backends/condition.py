"""Waiting for a condition in a task: await the notification, then take the lock back.

Invariant: the coroutines end with the lock held as before, also when they are
cancelled; a notification that a cancelled task had already been given goes to
the next waiter (the native operation sees to that).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def condition_wait(condition: Any, timeout: float | None = None) -> bool:
    """Wait for a notification; False if `timeout` (seconds) passed first."""
    lock = condition.lock
    depth = lock._async_depth() if hasattr(lock, "_async_depth") else 1
    operation, holding = condition._notified(timeout)
    try:
        return bool(await operation)
    finally:
        if not holding:
            await take_back(lock, depth)


async def take_back(lock: Any, depth: int) -> None:
    """Take the lock whatever happens; what was raised meanwhile is raised at the end."""
    if "trio" in sys.modules:
        from unsnarl.sync.backends import trio as trio_backend

        if trio_backend.is_running():
            with trio_backend.shield():
                await _take(lock, depth)
            return
    await _take_stubbornly(lock, depth)


async def _take(lock: Any, depth: int) -> None:
    await lock.async_acquire()
    if depth > 1:
        lock._deepen(depth)


async def _take_stubbornly(lock: Any, depth: int) -> None:
    interrupted: BaseException | None = None
    while True:
        try:
            await _take(lock, depth)
            break
        except BaseException as error:
            if isinstance(error, GeneratorExit):
                raise
            interrupted = error
    if interrupted is not None:
        raise interrupted


async def condition_wait_for(condition: Any, predicate: Callable[[], T], timeout: float | None = None) -> T:
    """Wait until `predicate()` is true; its last value, which is false if time ran out."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        result = predicate()
        if result:
            return result
        left = None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return result
        await condition_wait(condition, left)
