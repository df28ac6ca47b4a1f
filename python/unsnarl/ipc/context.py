"""Give multiprocessing's contexts the primitives of `unsnarl.ipc`.

``get_context("spawn")`` returns a context like that of `multiprocessing.get_context`: Process, Pool, Manager, Value …
and Lock, RLock, Semaphore, BoundedSemaphore, Condition, Event, Barrier, Queue, JoinableQueue and SimpleQueue that
survive the death of a process.

Invariant: a context refers to itself as the context of everything it makes.
"""

from __future__ import annotations

import multiprocessing.context as stock
from collections.abc import Callable
from multiprocessing import util
from typing import TYPE_CHECKING, Any

from unsnarl import _native as native

if TYPE_CHECKING:
    from unsnarl.ipc.pipes import SimpleQueue
    from unsnarl.ipc.process_queue import JoinableQueue, ProcessQueue


class _Primitives:
    """The factories that differ from the standard library's."""

    def Lock(self) -> native.IpcLock:  # noqa: N802 - the standard library's name
        """Return a lock that survives the death of its holder."""
        return native.IpcLock()

    def RLock(self) -> native.IpcRLock:  # noqa: N802
        """Return a re-entrant lock that survives the death of its holder."""
        return native.IpcRLock()

    def Condition(self, lock: Any = None) -> native.IpcCondition:  # noqa: N802
        """Return a condition variable."""
        return native.IpcCondition(lock)

    def Semaphore(self, value: int = 1) -> native.IpcSemaphore:  # noqa: N802
        """Return a semaphore."""
        return native.IpcSemaphore(value)

    def BoundedSemaphore(self, value: int = 1) -> native.IpcBoundedSemaphore:  # noqa: N802
        """Return a bounded semaphore."""
        return native.IpcBoundedSemaphore(value)

    def Event(self) -> native.IpcEvent:  # noqa: N802
        """Return an event."""
        return native.IpcEvent()

    def Barrier(  # noqa: N802
        self, parties: int, action: Callable[[], object] | None = None, timeout: float | None = None
    ) -> native.IpcBarrier:
        """Return a barrier."""
        return native.IpcBarrier(parties, action, timeout)

    def Queue(self, maxsize: int = 0) -> ProcessQueue:  # noqa: N802
        """Return a queue; without maxsize a put never waits."""
        from unsnarl.ipc.process_queue import ProcessQueue

        return ProcessQueue(maxsize)

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue:  # noqa: N802
        """Return a queue with task_done and join."""
        from unsnarl.ipc.process_queue import JoinableQueue

        return JoinableQueue(maxsize)

    def SimpleQueue(self) -> SimpleQueue:  # noqa: N802
        """Return a queue on a pipe, which a Pool can wait for."""
        from unsnarl.ipc.pipes import SimpleQueue

        context: Any = self
        return SimpleQueue(ctx=context.get_context())


NAMES = (
    "Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier",
    "Queue", "JoinableQueue", "SimpleQueue",
)  # fmt: skip
"""The factories of `_Primitives`."""


primitives = _Primitives
"""The factories that `patch()` puts into the standard library's own contexts."""


class _Family:
    """Return contexts of this module where the standard library returns its own."""

    def get_context(self, method: str | None = None) -> Any:
        """Return the context of that start method, this one by default."""
        return self if method is None else get_context(method)


class ForkContext(_Family, _Primitives, stock.ForkContext):  # type: ignore[misc]
    """Children by fork."""


class SpawnContext(_Family, _Primitives, stock.SpawnContext):  # type: ignore[misc]
    """Children by spawn."""


class ForkServerContext(_Family, _Primitives, stock.ForkServerContext):  # type: ignore[misc]
    """Children by a fork server."""


_contexts: dict[str, Any] = {}


def get_context(method: str | None = None) -> Any:
    """Return the context for a start method, as `multiprocessing.get_context` does.

    Raises:
        ValueError: there is no such start method.
    """
    import multiprocessing

    if method is None:
        method = multiprocessing.get_start_method()
    if not _contexts:
        _contexts.update(fork=ForkContext(), spawn=SpawnContext(), forkserver=ForkServerContext())
    if method not in _contexts:
        raise ValueError(f"cannot find context for {method!r}")
    return _contexts[method]


def _leave_at_exit(_: object) -> None:
    """Leave named segments when a child of multiprocessing ends: it runs no atexit handlers."""
    util.Finalize(None, native.ipc_leave, exitpriority=-200)


class _Anchor:
    """An object that can be referenced weakly."""


_anchor = _Anchor()
util.register_after_fork(_anchor, _leave_at_exit)
_leave_at_exit(None)
