"""The classes that `unsnarl.patch()` puts in the standard library's place.

Ours, with what instances of a class written in Python have besides: attributes of any
name, methods that can be replaced in one object, and their module's name.

Invariant: nothing is defined here but where the class seems to come from.
"""

from unsnarl import sync

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

    AnyQueue = sync.Queue[Any]
    AnyLifoQueue = sync.LifoQueue[Any]
    AnyPriorityQueue = sync.PriorityQueue[Any]
else:
    AnyQueue, AnyLifoQueue, AnyPriorityQueue = sync.Queue, sync.LifoQueue, sync.PriorityQueue

__all__ = ["Barrier", "BoundedSemaphore", "Condition", "Event", "LifoQueue", "PriorityQueue", "Queue", "Semaphore"]


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


class Queue(AnyQueue):
    """`queue.Queue`, native; no collection, as that is none: whoever looks for one would empty it, or wait."""

    __module__ = "queue"

    if not TYPE_CHECKING:
        __iter__ = __aiter__ = __len__ = None


class LifoQueue(AnyLifoQueue, Queue):
    """`queue.LifoQueue`, native."""

    __module__ = "queue"


class PriorityQueue(AnyPriorityQueue, Queue):
    """`queue.PriorityQueue`, native."""

    __module__ = "queue"
