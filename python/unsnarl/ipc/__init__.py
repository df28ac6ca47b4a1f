"""Locks, semaphores, events, barriers and queues between processes.

They are futexes in shared memory: with a name (``Lock("jobs")``) for any process of this user, without one for
children by fork, spawn or forkserver. The next holder learns of a holder's death: see `OwnerDied`.

The classes are native (`unsnarl._native`). This package adds their names, pickled objects on top of the queue of
bytes, methods for tasks, and multiprocessing's contexts. ``import unsnarl`` imports nothing of it.
"""

import atexit

from unsnarl._native import IpcBarrier as Barrier
from unsnarl._native import IpcBoundedSemaphore as BoundedSemaphore
from unsnarl._native import IpcBytesQueue as BytesQueue
from unsnarl._native import IpcCondition as Condition
from unsnarl._native import IpcCountdownEvent as CountdownEvent
from unsnarl._native import IpcEvent as Event
from unsnarl._native import IpcLock as Lock
from unsnarl._native import IpcRLock as RLock
from unsnarl._native import IpcRWLock as RWLock
from unsnarl._native import IpcSemaphore as Semaphore
from unsnarl._native import ipc_leave as _leave
from unsnarl.ipc.errors import OwnerDied, SegmentRefused
from unsnarl.ipc.queue import Queue

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from unsnarl.ipc.context import get_context
    from unsnarl.ipc.start import start_together

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "BytesQueue",
    "Condition",
    "CountdownEvent",
    "Event",
    "Lock",
    "OwnerDied",
    "Queue",
    "RLock",
    "RWLock",
    "SegmentRefused",
    "Semaphore",
    "get_context",
    "start_together",
]

# A module's globals may outlive the interpreter's last line: leave the named segments before that.
atexit.register(_leave)

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load the functions that need multiprocessing on first use."""
        if name == "get_context":
            from unsnarl.ipc.context import get_context

            return get_context
        if name == "start_together":
            from unsnarl.ipc.start import start_together

            return start_together
        raise AttributeError(f"module 'unsnarl.ipc' has no attribute {name!r}")
