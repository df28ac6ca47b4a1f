"""Which library runs the running task, where several may: loops nest.

Synchronous code in a task of trio may run asyncio, or the other way round; each of them then says that a task of
its own runs. The stack tells which is the innermost: whose frame comes first from inside.

Invariant: no library is imported that the program has not imported itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

_LOOPS_OF_ASYNCIO = ("asyncio.events", "asyncio.base_events", "asyncio.runners", "uvloop")
"""Modules whose functions run tasks and callbacks; a loop in C has no frame, but the task has one."""

_LOOPS_OF_OTHERS = {"unrolled_run": "trio", "kernel_run": "curio"}
"""The function that takes a task's next step, all versions."""


def backend() -> Any:
    """Return our module for the library whose task runs here; None for asyncio, and where no task runs."""
    found: dict[str, Any] = {}
    if "trio" in sys.modules:
        from unsnarl.sync.backends import trio as trio_backend

        if trio_backend.is_running():
            found["trio"] = trio_backend
    if "curio" in sys.modules:
        from unsnarl.sync.backends import curio as curio_backend

        if curio_backend.is_running():
            found["curio"] = curio_backend
    if not found:
        return None
    if len(found) == 1 and not _runs_asyncio():
        return next(iter(found.values()))
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    return found.get(_innermost(frame))


def clock() -> Callable[[], float]:
    """Return the clock (seconds) that the running task's timeouts go by."""
    library = backend()
    if library is not None:
        told: Callable[[], float] = library.clock
        return told
    if _runs_asyncio():
        import asyncio

        return asyncio.get_running_loop().time
    return time.monotonic


def asyncio_task() -> Any:
    """Return asyncio's running task, or None."""
    if "asyncio" in sys.modules:
        import asyncio

        try:
            return asyncio.current_task()
        except RuntimeError:
            return None
    return None


def _runs_asyncio() -> bool:
    if "asyncio" in sys.modules:
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True
    return False


def _innermost(frame: FrameType | None) -> str:
    task, first = asyncio_task(), None
    if task is not None:
        coroutine = task.get_coro()
        first = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if first is None:
            # Written in C, as our own awaitables are: no place to run another loop in.
            return "asyncio"
    while frame is not None:
        if frame is first or frame.f_globals.get("__name__") in _LOOPS_OF_ASYNCIO:
            return "asyncio"
        library = _LOOPS_OF_OTHERS.get(frame.f_code.co_name)
        if library is not None and str(frame.f_globals.get("__name__")).startswith(f"{library}."):
            return library
        frame = frame.f_back
    return "asyncio"
