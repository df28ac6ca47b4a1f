"""The interface of the native classes to event loops and greenlet hubs other than asyncio.

The native side calls it only when a call has to wait, and a library that could suspend the caller has been imported.
A *parker* suspends one party, repeatedly; its `unpark()` may be called from any thread.

Invariant: no library is imported that the program has not imported itself.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from unsnarl.sync.backends import running
from unsnarl.sync.backends.condition import condition_wait, condition_wait_for
from unsnarl.sync.backends.tasks import current_task, describe_task, is_over

__all__ = [
    "Parker",
    "condition_wait",
    "condition_wait_for",
    "current_task",
    "describe_task",
    "green_parker",
    "is_over",
    "task_parker",
]


class Parker(Protocol):
    """Suspends one party until `unpark()`, or until a timeout by the clock of its library."""

    def park(self, timeout: float | None) -> Any:
        """Suspend until unparked or timed out; return whether it timed out. Returns an awaitable for tasks.

        `timeout` is in seconds from the first call: after a spurious wake-up the party calls again with the same.
        """

    def unpark(self) -> None:
        """End the current suspension, or else the next; from any thread, without blocking."""


def task_parker() -> Parker | None:
    """Return a parker for the running task; None if the task is asyncio's, which needs none."""
    backend = running.backend()
    parker: Parker | None = None if backend is None else backend.parker()
    return parker


def green_parker() -> Parker | None:
    """Return a parker for the current greenlet; None if this thread has no hub."""
    if "gevent" in sys.modules:
        from unsnarl.sync.backends import gevent as gevent_backend

        parker = gevent_backend.parker()
        if parker is not None:
            return parker
    if "eventlet" in sys.modules:
        from unsnarl.sync.backends import eventlet as eventlet_backend

        return eventlet_backend.parker()
    return None
