"""How the native classes reach event loops and greenlet hubs, other than asyncio.

The native side asks here only when it must: when a call has to wait, and a
library that could suspend it has been imported. A *parker* suspends one party
again and again; its `unpark()` may be called from any thread.

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
    """Suspend one party until `unpark()`, or until it is out of time by its library's own clock."""

    def park(self, timeout: float | None) -> Any:
        """Suspend until unparked or out of time, and tell whether it is out of time; an awaitable for tasks.

        `timeout` is in seconds from the first call on: who is woken in vain calls again with the same.
        """

    def unpark(self) -> None:
        """End the suspension, or the next one; from any thread, without blocking."""


def task_parker() -> Parker | None:
    """Make a parker for the running task; None if asyncio's own way is to be used."""
    backend = running.backend()
    parker: Parker | None = None if backend is None else backend.parker()
    return parker


def green_parker() -> Parker | None:
    """Make a parker for the current greenlet; None if this thread has no hub."""
    if "gevent" in sys.modules:
        from unsnarl.sync.backends import gevent as gevent_backend

        parker = gevent_backend.parker()
        if parker is not None:
            return parker
    if "eventlet" in sys.modules:
        from unsnarl.sync.backends import eventlet as eventlet_backend

        return eventlet_backend.parker()
    return None
