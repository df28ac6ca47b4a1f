"""Tasks of curio.

Invariant: a suspension is a `concurrent.futures.Future`, which may be set from
any thread; curio's kernel watches it.
"""

from __future__ import annotations

import inspect
from concurrent.futures import Future
from importlib import import_module
from types import FrameType
from typing import Any

# Without types: what comes out of it is Any.
curio: Any = import_module("curio")
_is_running: Any = import_module("curio.meta").curio_running
_future_wait: Any = import_module("curio.traps")._future_wait


def is_running() -> bool:
    """Tell whether the caller runs in curio's kernel."""
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


class CurioParker:
    """Suspend one task of curio."""

    __slots__ = ("_future", "_is_unparked")

    def __init__(self) -> None:
        self._future: Future[None] | None = None
        self._is_unparked = False

    async def park(self, timeout: float | None) -> None:
        """Suspend until unparked or `timeout` (seconds)."""
        if self._is_unparked:
            self._is_unparked = False
            return
        self._future = Future()
        try:
            if timeout is None:
                await _future_wait(self._future)
            else:
                await curio.ignore_after(timeout, _future_wait, self._future)
        finally:
            self._future = None

    def unpark(self) -> None:
        """End the suspension, or the next one; from any thread."""
        future = self._future
        if future is None:
            self._is_unparked = True
        elif not future.done():
            future.set_result(None)
