"""Detection of the library that runs the current task; event loops may be nested.

Synchronous code in a task of trio may run asyncio, or the other way round; each library then reports a running task of
its own. The innermost loop is the one whose frame is nearest on the stack.

Invariant: no library is imported that the program has not imported itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

_LOOPS_OF_ASYNCIO = ("asyncio.events", "asyncio.base_events", "asyncio.runners", "uvloop")
"""Modules whose functions run tasks and callbacks; a loop in C has no frame, but its task has one."""

_LOOPS_OF_OTHERS = {"unrolled_run": "trio", "kernel_run": "curio"}
"""The functions that run the next step of a task, in all versions."""


def backend() -> Any:
    """Return unsnarl's back end for the library whose task runs here; None for asyncio, and if no task runs."""
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
    """Return the clock (seconds) of the running task's timeouts."""
    library = backend()
    if library is not None:
        of_library: Callable[[], float] = library.clock
        return of_library
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
            # Written in C, as the awaitables of unsnarl are: it cannot run another loop.
            return "asyncio"
    while frame is not None:
        if frame is first or frame.f_globals.get("__name__") in _LOOPS_OF_ASYNCIO:
            return "asyncio"
        library = _LOOPS_OF_OTHERS.get(frame.f_code.co_name)
        if library is not None and str(frame.f_globals.get("__name__")).startswith(f"{library}."):
            return library
        frame = frame.f_back
    return "asyncio"
