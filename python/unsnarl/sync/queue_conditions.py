"""The three conditions of a `queue.Queue`, for programs that wait on them or notify them.

The `put`, `get` and `join` of unsnarl do not wait on them; a queue creates them on first access. If a program changes
`queue` with `mutex` held and then notifies, the waiters in `put` and `get` re-check the queue too.

A program may give a condition a `wait` of its own, as an attribute, to observe or replace the wait. Then threads and
greenlets that have to wait call it, in the loop of the standard library's `queue.Queue`: the functions of this module.
Tasks do not: the standard library has no such wait for them.

Invariant: all three use the queue's one `mutex`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from unsnarl._native import Condition, Queue
from unsnarl.sync import errors
from unsnarl.sync.errors import Empty, Full

# Its functions, and not those that a subclass of the program has put in their place.
_NATIVE: type[Queue[Any]] = Queue


class QueueCondition(Condition):
    """A condition whose notifications also reach the parties that wait in the queue itself.

    Fairness and cancellation: as `Condition` for waiters of the condition; as `Queue` for waiters of the queue.
    """

    def __init__(self, queue: Queue[Any], kind: int) -> None:
        super().__init__(queue.mutex)
        self._queue = queue
        self._kind = kind

    @property
    def _waiters(self) -> tuple[None, ...]:
        """One item for each party that waits, here or in the queue itself: programs count these."""
        return (None,) * (self.waiting + _NATIVE._waiting(self._queue)[self._kind])

    def notify(self, n: int = 1) -> None:
        """Notify up to `n` waiters, the longest waiting first."""
        super().notify(n)
        self._queue._recount()

    def notify_all(self) -> None:
        """Notify all waiters."""
        super().notify_all()
        self._queue._recount()


def conditions(queue: Queue[Any]) -> list[QueueCondition]:
    """Make `not_empty`, `not_full` and `all_tasks_done`."""
    return [QueueCondition(queue, kind) for kind in range(3)]


def put(queue: Queue[Any], item: Any, timeout: float | None) -> None:
    """Put an item; to wait for room, call `not_full.wait`. Raises Full after the timeout (seconds), and ShutDown."""

    def attempt() -> bool:
        try:
            _NATIVE.put(queue, item, False)
        except Full:
            return False
        return True

    def has_to_wait() -> bool:
        return 0 < queue.maxsize <= queue._qsize() and not queue.is_shutdown

    if not _attempted(attempt, queue, queue.not_full, has_to_wait, timeout):
        _NATIVE.put(queue, item, False)


def get(queue: Queue[Any], timeout: float | None) -> Any:
    """Get an item; to wait for one, call `not_empty.wait`. Raises Empty after the timeout (seconds), and ShutDown."""
    items: list[Any] = []

    def attempt() -> bool:
        try:
            items.append(_NATIVE.get(queue, False))
        except Empty:
            return False
        return True

    def has_to_wait() -> bool:
        return not queue._qsize() and not queue.is_shutdown

    if not _attempted(attempt, queue, queue.not_empty, has_to_wait, timeout):
        return _NATIVE.get(queue, False)
    return items[0]


def join(queue: Queue[Any], timeout: float | None) -> bool:
    """Call `all_tasks_done.wait` until every item was reported done; return whether that happened in time (seconds)."""

    def is_done() -> bool:
        return queue.unfinished_tasks == 0

    return _attempted(is_done, queue, queue.all_tasks_done, lambda: not is_done(), timeout)


def _attempted(
    attempt: Callable[[], bool],
    queue: Queue[Any],
    condition: Condition,
    has_to_wait: Callable[[], bool],
    timeout: float | None,
) -> bool:
    """Wait on the condition until the attempt succeeds; return False if the time is up first.

    The clock is the one in the module `queue`, where a program that has its own `wait` may have its own clock too.
    """
    clock: Callable[[], float] = getattr(vars(errors)["standard"], "time", monotonic)
    end = None if timeout is None else clock() + timeout
    while not attempt():
        with queue.mutex:
            if not has_to_wait():
                continue
            if end is None:
                condition.wait()
                continue
            remaining = end - clock()
            if remaining <= 0:
                return False
            condition.wait(remaining)
    return True
