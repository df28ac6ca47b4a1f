"""Checks of the arguments of the primitives; the errors are those of the standard library's classes.

A checked timeout is in seconds: None for no limit, 0 for not waiting.
"""

from __future__ import annotations

import math
from _thread import TIMEOUT_MAX
from typing import Any

TIMEOUT_MAX_S = TIMEOUT_MAX
"""The longest timeout in seconds: that of the interpreter's own locks, which differs between interpreters."""

UNBOUNDED = 2**63 - 1
"""The bound of a semaphore that has none."""


def _number(value: Any) -> float:
    """Return a number as a float; TypeError for text, which `float` would read."""
    if not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)


def _seconds(timeout: Any) -> float:
    seconds = _number(timeout)
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    if seconds > TIMEOUT_MAX_S:
        raise OverflowError("timeout value is too large")
    return seconds


def lock_timeout(blocking: Any, timeout: Any) -> float | None:
    """Check `acquire(blocking=True, timeout=-1)` of locks."""
    seconds = -1.0 if timeout == -1 else _seconds(timeout)
    if not blocking:
        if seconds != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        return 0.0
    if seconds == -1:
        return None
    if seconds < 0:
        raise ValueError("timeout value must be a non-negative number")
    return seconds


def is_too_long(timeout: Any) -> bool:
    """Return whether a timeout is refused only for its length, which matters only to a call that waits."""
    return timeout is not None and _number(timeout) > TIMEOUT_MAX_S


def wait_timeout(timeout: Any) -> float | None:
    """Check `wait(timeout=None)`, where a negative time does not wait."""
    return None if timeout is None else max(0.0, _seconds(timeout))


def semaphore_timeout(blocking: Any, timeout: Any) -> float | None:
    """Check `acquire(blocking=True, timeout=None)` of semaphores."""
    if not blocking:
        if timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        return 0.0
    return wait_timeout(timeout)


def limiter_timeout(blocking: Any, timeout: Any) -> float | None:
    """Check `acquire(blocking=True, timeout=None)` of limiters, where -1 is no limit either."""
    return lock_timeout(True, -1 if timeout is None else timeout) if blocking else 0.0


def queue_timeout(block: Any, timeout: Any) -> float | None:
    """Check `put(item, block=True, timeout=None)` of queues."""
    if not block:
        return 0.0
    return task_timeout(timeout)


def task_timeout(timeout: Any, blocking: Any = True) -> float | None:
    """Check `async_acquire(timeout=None, blocking=True)`."""
    seconds = None if timeout is None else _seconds(timeout)
    if seconds is not None and seconds < 0:
        raise ValueError("'timeout' must be a non-negative number")
    return seconds if blocking else 0.0


def count(number: Any) -> int:
    """Return a number of permits, parties or waiters; a fraction is rounded away from zero, NaN is below all."""
    if isinstance(number, int):
        return max(-UNBOUNDED, min(UNBOUNDED, number))
    if hasattr(number, "__index__"):
        return count(number.__index__())
    value = _number(number)
    if math.isnan(value):
        return -UNBOUNDED
    if math.isinf(value):
        return UNBOUNDED if value > 0 else -UNBOUNDED
    return count(math.floor(value) if value < 0 else math.ceil(value))


def capacity(maxsize: Any) -> int:
    """Return `maxsize` of a queue as a capacity; 0 for none."""
    if isinstance(maxsize, float) and not math.isfinite(maxsize):
        return 0
    found = count(maxsize)
    return found if 0 < found < UNBOUNDED else 0


def positive(number: int) -> int:
    """Return a count that is at least one; ValueError otherwise."""
    if number < 1:
        raise ValueError("count must be >= 1")
    return number
