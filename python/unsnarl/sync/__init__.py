"""Locks, semaphores, events, barriers and queues for threads, tasks and greenlets.

The classes are native (`unsnarl._native`); this module gives them their names.
Nothing here may import an event loop or a greenlet library: the back ends are
imported by the first call that has to wait for one of them.
"""

from unsnarl._native import (
    Barrier,
    BoundedSemaphore,
    Condition,
    Event,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RLock,
    Semaphore,
    SimpleQueue,
)

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
]
