"""The three conditions of a `queue.Queue`, for programs that wait on them or notify them.

Our own `put` and `get` do not wait on these; a queue has them from the first time that
somebody asks. Whoever changes `queue` with `mutex` held and then notifies, as such
programs do, lets our waiters look again too.

Invariant: all three are over the queue's one `mutex`.
"""

from __future__ import annotations

from typing import Any

from unsnarl._native import Condition, Queue


class QueueCondition(Condition):
    """A condition whose notifications also reach those who wait in the queue itself.

    Fairness and cancellation: as `Condition`, for who waits on it; as `Queue`, for the others.
    """

    def __init__(self, queue: Queue[Any]) -> None:
        super().__init__(queue.mutex)
        self._queue = queue

    def notify(self, n: int = 1) -> None:
        """Notify up to `n` parties, the longest waiting first."""
        super().notify(n)
        self._queue._recount()

    def notify_all(self) -> None:
        """Notify everybody who waits."""
        super().notify_all()
        self._queue._recount()


def conditions(queue: Queue[Any]) -> list[QueueCondition]:
    """Make `not_empty`, `not_full` and `all_tasks_done`."""
    return [QueueCondition(queue) for _ in range(3)]
