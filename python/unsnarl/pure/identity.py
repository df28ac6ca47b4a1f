"""Identities of callers: the number of a thread, a greenlet, or a task with the number of its thread.

Objects themselves are compared, since PyPy gives them no stable addresses.

Invariant: a party's identity is the same in each of its calls, and no other living party has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from unsnarl.pure.parties import Waiter, has_hubs, thread_number


@cache
def _task_facts() -> Any:
    """Return `unsnarl.sync.backends.tasks`, loaded on first use: `unsnarl.sync` imports this room."""
    from unsnarl.sync.backends import tasks

    return tasks


def caller() -> Any:
    """Return the calling thread's number, or the calling greenlet if that is not its thread's first."""
    if "greenlet" in sys.modules:
        greenlet = sys.modules["greenlet"].getcurrent()
        if greenlet.parent is not None:
            return greenlet
    return thread_number()


def task_if_any() -> tuple[Any, int] | None:
    """Return the running task and its thread's number; None if no task runs."""
    task = _task_facts().current_task()
    return None if task is None else (task, thread_number())


def task() -> tuple[Any, int]:
    """Return the running task and its thread's number; RuntimeError if no task runs."""
    found = task_if_any()
    if found is None:
        raise RuntimeError(
            "the asynchronous methods work in a task of asyncio, trio, anyio or curio; there is none here"
        )
    return found


def is_task(who: Any) -> bool:
    """Return whether this is the identity of a task."""
    return isinstance(who, tuple)


def has_ended(who: Any) -> bool:
    """Return whether this is a task that will not run again."""
    return is_task(who) and bool(_task_facts().will_not_run(who[0]))


def stuck_name(who: Any) -> str | None:
    """Return the name of a task that cannot run while the calling thread waits; None for any other party."""
    if not is_task(who) or who[1] != thread_number() or _has_hub():
        return None
    current = _task_facts().current_task()
    if current is None or (who[0] is not current and _task_facts().will_not_run(who[0])):
        return None
    return str(_task_facts().name_of(who[0]))


def _has_hub() -> bool:
    if not has_hubs():
        return False
    from unsnarl.sync.backends import green_parker

    return green_parker() is not None


def deadlock(what: str) -> RuntimeError:
    """Return the error for a wait that cannot end."""
    return RuntimeError(
        f"deadlock: {what} cannot run while the thread waits; acquire it with 'async with' or "
        "'await async_acquire()' instead"
    )


def refuse_deadlock(holders: Iterable[Any], waiters: Iterable[Waiter]) -> None:
    """Raise if a task of the calling thread holds a lock, or is to get it before the caller."""
    for holder in holders:
        if name := stuck_name(holder):
            raise deadlock(f"the lock is held by {name}, a task of this thread, which")
    for waiter in waiters:
        if name := stuck_name(waiter.who):
            raise deadlock(f"the lock is promised first to {name}, a task of this thread, which")
