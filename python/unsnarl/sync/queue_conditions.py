"""The three conditions of a `queue.Queue`, for programs that wait on them or notify them.

The `put` and `get` of unsnarl do not wait on them; a queue creates them on first access. If a program changes `queue`
with `mutex` held and then notifies, the waiters in `put` and `get` re-check the queue too.

Invariant: all three use the queue's one `mutex`.
"""

from __future__ import annotations

from typing import Any

from unsnarl._native import Condition, Queue


class QueueCondition(Condition):
    """A condition whose notifications also reach the parties that wait in the queue itself.

    Fairness and cancellation: as `Condition` for waiters of the condition; as `Queue` for waiters of the queue.
    """

    def __init__(self, queue: Queue[Any]) -> None:
        super().__init__(queue.mutex)
        self._queue = queue

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
    return [QueueCondition(queue) for _ in range(3)]
