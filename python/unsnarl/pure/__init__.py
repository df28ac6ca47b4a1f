"""The primitives in pure Python, behind the names of the native ones; for interpreters other than CPython.

:mod:`unsnarl._native` chooses them. They promise what docs/guide/primitives promises; what costs depends on the
interpreter's compiler. docs/design/platforms.md ("PyPy") has the reasons.

Must never: be loaded where the extension is, but by a test.
"""

from unsnarl.pure.barrier import Barrier
from unsnarl.pure.condition import Condition
from unsnarl.pure.flags import Flag, ResourceGuard
from unsnarl.pure.gates import CountdownEvent, Event, Latch
from unsnarl.pure.limiter import CapacityLimiter
from unsnarl.pure.locks import Lock, RLock
from unsnarl.pure.queues import LifoQueue, PriorityQueue, Queue, SimpleQueue
from unsnarl.pure.rwlock import RWLock, RWLockSide
from unsnarl.pure.semaphores import BoundedSemaphore, Semaphore

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "CapacityLimiter",
    "Condition",
    "CountdownEvent",
    "Event",
    "Flag",
    "Latch",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "RWLock",
    "RWLockSide",
    "ResourceGuard",
    "Semaphore",
    "SimpleQueue",
]
