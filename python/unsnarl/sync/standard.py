"""The classes that `unsnarl.patch()` puts in the standard library's place.

Ours, with what instances of a class written in Python have besides: attributes of any
name, methods that can be replaced in one object, and their module's name.

Invariant: nothing is defined here but where the class seems to come from; `typing` is not
needed for that, so the queues' items are of any type.
"""

from unsnarl import sync


class Condition(sync.Condition):
    """`threading.Condition`, native."""

    __module__ = "threading"


class Semaphore(sync.Semaphore):
    """`threading.Semaphore`, native."""

    __module__ = "threading"


class BoundedSemaphore(sync.BoundedSemaphore, Semaphore):
    """`threading.BoundedSemaphore`, native."""

    __module__ = "threading"


class Event(sync.Event):
    """`threading.Event`, native."""

    __module__ = "threading"


class Barrier(sync.Barrier):
    """`threading.Barrier`, native."""

    __module__ = "threading"


class Queue(sync.Queue):  # type: ignore[type-arg]
    """`queue.Queue`, native."""

    __module__ = "queue"


class LifoQueue(sync.LifoQueue, Queue):  # type: ignore[type-arg]
    """`queue.LifoQueue`, native."""

    __module__ = "queue"


class PriorityQueue(sync.PriorityQueue, Queue):  # type: ignore[type-arg]
    """`queue.PriorityQueue`, native."""

    __module__ = "queue"
