"""Locks, semaphores, events, barriers and queues for threads, tasks and greenlets.

The classes are native (`unsnarl._native`); this module gives them their names.
Invariant: no event loop and no greenlet library is imported here. The first call that has to wait in one of them
imports its back end.
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
from unsnarl.sync import frozen as frozen

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from unsnarl.sync.errors import Empty, Full, ShutDown
    from unsnarl.sync.once import Once
    from unsnarl.sync.variants import (
        BinarySemaphore,
        BoundedBinarySemaphore,
        RBarrier,
        RCapacityLimiter,
        REvent,
        SimpleLifoQueue,
    )

__all__ = [
    "Barrier",
    "BinarySemaphore",
    "BoundedBinarySemaphore",
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
    "RBarrier",
    "RCapacityLimiter",
    "REvent",
    "RLock",
    "RWLock",
    "ResourceGuard",
    "Semaphore",
    "ShutDown",
    "SimpleLifoQueue",
    "SimpleQueue",
]

_LATE = {
    "Empty": "errors",
    "Full": "errors",
    "ShutDown": "errors",
    "Once": "once",
    "BinarySemaphore": "variants",
    "BoundedBinarySemaphore": "variants",
    "RBarrier": "variants",
    "RCapacityLimiter": "variants",
    "REvent": "variants",
    "SimpleLifoQueue": "variants",
}
"""Modules of the names that are loaded on first use. `queue` may be a module of the program, and generic classes need
``typing``, which takes as long to import as everything else here."""

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a name of `_LATE` on first use."""
        if name in _LATE:
            from importlib import import_module

            globals()[name] = found = getattr(import_module(f"unsnarl.sync.{_LATE[name]}"), name)
            return found
        raise AttributeError(f"module 'unsnarl.sync' has no attribute {name!r}")
