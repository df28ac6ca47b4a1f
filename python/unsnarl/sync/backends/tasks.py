"""Lookup of a task by its address, which is all that a lock remembers of its owner.

Only error paths call it: searching for a task may take as long as a garbage collection.

Invariant: if in doubt, a task counts as alive.
"""

from __future__ import annotations

import gc
from typing import Any

from unsnarl.sync import frozen
from unsnarl.sync.backends import running


def current_task() -> Any:
    """Return the running task, of any library, or None."""
    backend = running.backend()
    return running.asyncio_task() if backend is None else backend.current_task()


def is_over(address: int) -> bool:
    """Return whether no task at this address will run again; at most its coroutine can still be closed."""
    task = _find(address)
    if task is None:
        return gc.get_freeze_count() <= frozen.AT_FIRST
    return will_not_run(task)


def describe_task(address: int) -> str | None:
    """Return the name of the task at this address; None if none will run again, or no task runs here.

    Only the address is known: a new task at the address of one that has ended is mistaken for it.
    """
    current = current_task()
    if current is None:
        return None
    if id(current) == address:
        return name_of(current)
    task = _find(address)
    return None if task is None or will_not_run(task) else name_of(task)


def _find(address: int) -> Any:
    """Return the task at this address; None also for a task that is being collected."""
    for candidate in gc.get_objects():
        if id(candidate) == address:
            return candidate if hasattr(candidate, "get_coro") or hasattr(candidate, "coro") else None
    return None


def will_not_run(task: Any) -> bool:
    """Return whether a task has ended, or its loop has."""
    if hasattr(task, "get_loop"):
        return bool(task.done() or task.get_loop().is_closed() or _is_being_closed(task))
    frame = getattr(task.coro, "cr_frame", getattr(task.coro, "gi_frame", task))
    return frame is None


def _is_being_closed(task: Any) -> bool:
    """Return whether the coroutine of an asyncio task runs although its loop does not run it."""
    import asyncio

    coroutine = task.get_coro()
    runs = getattr(coroutine, "cr_running", False) or getattr(coroutine, "gi_running", False)
    return bool(runs) and asyncio.current_task(task.get_loop()) is not task


def name_of(task: Any) -> str:
    """Return the words for a task in an error."""
    get_name = getattr(task, "get_name", None)
    return f"task {get_name() if get_name else getattr(task, 'name', task)!r}"
