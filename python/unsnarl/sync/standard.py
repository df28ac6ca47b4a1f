"""The classes that `unsnarl.patch()` puts in the standard library's place.

Ours, with what instances of a class written in Python have besides: attributes of any
name, methods that can be replaced in one object, and their module's name. A queue that gets
a hook (`_put`, say) as an attribute of its own looks its hooks up from then on. A hook that is replaced in one of
these classes is heeded by the queues that are made afterwards: to notice it in the others would take a metaclass,
which does not go together with a program's own, or a question at each call.

Invariant: nothing is defined here but where the class seems to come from, and what an object of it is told by its
attributes.
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

HOOKS = frozenset({"_init", "_qsize", "_put", "_get"})
"""What `queue.Queue` calls for a subclass to change."""

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

        def __setattr__(self, name: str, value: object) -> None:
            """Set it; a hook is one for this queue from now on."""
            super().__setattr__(name, value)
            if name in HOOKS:
                self._look_hooks_up()


class LifoQueue(AnyLifoQueue, Queue):
    """`queue.LifoQueue`, native."""

    __module__ = "queue"


class PriorityQueue(AnyPriorityQueue, Queue):
    """`queue.PriorityQueue`, native."""

    __module__ = "queue"
