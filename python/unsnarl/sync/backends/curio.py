"""Parker for tasks of curio.

Invariant: a suspension is a `concurrent.futures.Future`, which any thread may resolve; curio's kernel watches it.
"""

from __future__ import annotations

import inspect
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

# Without types: its values are Any.
curio: Any = import_module("curio")
_is_running: Any = import_module("curio.meta").curio_running
_future_wait: Any = import_module("curio.traps")._future_wait


def is_running() -> bool:
    """Return whether the caller runs in curio's kernel."""
    return bool(_is_running())


def current_task() -> Any:
    """Return the running task: the kernel keeps it in the frame of its trap loop."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        task = frame.f_locals.get("current") if frame.f_code.co_name == "kernel_run" else None
        if task is not None:
            return task
        frame = frame.f_back
    return None


def clock() -> float:
    """Return the time (seconds) of the kernel's clock: `curio.clock()` can only be awaited by tasks."""
    return time.monotonic()


def parker() -> CurioParker:
    """Return a parker for the running task."""
    return CurioParker()


class CurioParker:
    """Suspends one task of curio.

    The future of a suspension exists before the suspension, and is replaced as soon as the suspension has ended,
    before the task re-checks its condition. So a call of `unpark`, from any thread at any time, either ends a
    suspension or precedes that check.
    """

    __slots__ = ("_deadline", "_future")

    def __init__(self) -> None:
        self._deadline: float | None = None
        self._future: Future[None] = Future()

    async def park(self, timeout: float | None) -> bool:
        """Suspend until unparked or timed out; return whether it timed out."""
        try:
            if timeout is None:
                await _future_wait(self._future)
                return False
            if self._deadline is None:
                self._deadline = clock() + timeout
            async with curio.ignore_after(max(0.0, self._deadline - clock())) as scope:
                await _future_wait(self._future)
            return bool(scope.expired)
        finally:
            self._future = Future()

    def unpark(self) -> None:
        """End the current suspension, or else the next; from any thread."""
        with suppress(InvalidStateError):  # woken already, or cancelled
            self._future.set_result(None)
