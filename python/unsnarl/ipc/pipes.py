"""SimpleQueue: multiprocessing's queue on a pipe, with locks that survive their holders.

A Pool waits for the descriptors of its queues, so the queues must be pipes. A Pool kills its workers while they wait
for the next task with the lock held. With the standard library's lock no other worker ever gets a task again; here
the next worker takes the lock over.

Invariant: the lock is taken over only from a process that had not begun to read a message. A process that died in the
middle left half a message in the pipe, which is an error.
"""

from __future__ import annotations

from multiprocessing import queues
from typing import Any

from unsnarl.ipc.errors import OwnerDied


class SimpleQueue(queues.SimpleQueue[Any]):
    """A queue on a pipe, which a Pool can wait for."""

    def get(self) -> Any:
        """Take the oldest item."""
        lock: Any = vars(self)["_rlock"]
        _take_over(lock)
        try:
            message = self._reader.recv_bytes()  # type: ignore[attr-defined]
        finally:
            lock.release()
        return queues._ForkingPickler.loads(message)  # type: ignore[attr-defined]

    def put(self, obj: object) -> None:
        """Put an item at the end."""
        message = queues._ForkingPickler.dumps(obj)  # type: ignore[attr-defined]
        lock: Any = vars(self)["_wlock"]
        _take_over(lock)
        try:
            self._writer.send_bytes(message)  # type: ignore[attr-defined]
        finally:
            lock.release()


def _take_over(lock: Any) -> None:
    try:
        lock.acquire()
    except OwnerDied:
        lock.make_consistent()
