"""Parker for tasks of trio (and of anyio on trio).

Invariant: a task is rescheduled only in its own run; other threads go through the run's token.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from typing import Any

# trio is not installed where types are checked: its values are Any.
trio: Any = import_module("trio")


_in_trio_task: Any = getattr(trio.lowlevel, "in_trio_task", None)


def is_running() -> bool:
    """Return whether the caller runs in a task of trio."""
    if _in_trio_task is not None:
        return bool(_in_trio_task())
    try:
        return trio.lowlevel.current_task() is not None
    except RuntimeError:  # before trio 0.23
        return False


def current_task() -> Any:
    """Return the running task."""
    return trio.lowlevel.current_task()


def parker() -> TrioParker:
    """Return a parker for the running task."""
    return TrioParker()


def shield() -> AbstractContextManager[Any]:
    """Return a scope that shields from cancellation."""
    scope: AbstractContextManager[Any] = trio.CancelScope(shield=True)
    return scope


def clock() -> float:
    """Return the time (seconds) of the run's clock, which a program may replace."""
    return float(trio.current_time())


class TrioParker:
    """Suspends one task of trio."""

    __slots__ = ("_deadline", "_is_parked", "_is_unparked", "_task", "_token")

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._token = trio.lowlevel.current_trio_token()
        self._deadline: float | None = None
        self._is_parked = False
        self._is_unparked = False

    async def park(self, timeout: float | None) -> bool:
        """Suspend until unparked or timed out; return whether it timed out."""
        if self._deadline is None:
            self._deadline = math.inf if timeout is None else clock() + timeout
        if self._is_unparked:
            self._is_unparked = False
            return False
        with trio.CancelScope() as scope:
            scope.deadline = self._deadline
            self._is_parked = True
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        return bool(scope.cancelled_caught)

    def _abort(self, _raise_cancel: Any) -> Any:
        self._is_parked = False
        return trio.lowlevel.Abort.SUCCEEDED

    def unpark(self) -> None:
        """End the current suspension, or else the next; from any thread."""
        # Outside of tasks, a signal handler may have interrupted the run at any point.
        if is_running() and trio.lowlevel.current_trio_token() is self._token:
            self._resume()
        else:
            # After the end of a run none of its tasks waits.
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._resume)

    def _resume(self) -> None:
        if self._is_parked:
            self._is_parked = False
            trio.lowlevel.reschedule(self._task)
        else:
            self._is_unparked = True
