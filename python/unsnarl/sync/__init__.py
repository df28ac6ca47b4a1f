"""Locks, semaphores, events, barriers and queues for threads, tasks and greenlets.

The classes are native (`unsnarl._native`); this module gives them their names.
Nothing here may import an event loop or a greenlet library: the back ends are
imported by the first call that has to wait for one of them.
"""

from unsnarl._native import (
    Barrier,
    BoundedSemaphore,
    CapacityLimiter,
    Condition,
    CountdownEvent,
    Event,
    Flag,
    Latch,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    ResourceGuard,
    RLock,
    RWLock,
    Semaphore,
    SimpleQueue,
)
from unsnarl.sync.errors import Empty, Full, ShutDown

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from unsnarl.sync.once import Once

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "CapacityLimiter",
    "Condition",
    "CountdownEvent",
    "Empty",
    "Event",
    "Flag",
    "Full",
    "Latch",
    "LifoQueue",
    "Lock",
    "Once",
    "PriorityQueue",
    "Queue",
    "RLock",
    "RWLock",
    "ResourceGuard",
    "Semaphore",
    "ShutDown",
    "SimpleQueue",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load Once on first use: it is generic, and ``typing`` takes as long as all the rest."""
        if name == "Once":
            from unsnarl.sync.once import Once

            globals()[name] = Once
            return Once
        raise AttributeError(f"module 'unsnarl.sync' has no attribute {name!r}")
