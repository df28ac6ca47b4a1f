"""The classes that `unsnarl.patch()` puts in the place of those of the standard library.

They extend the native classes with the properties of classes written in Python: instances have arbitrary attributes,
a method can be replaced in one object, and the module's name is that of the standard library.

A queue that gets a hook (such as `_put`) as an instance attribute calls it from then on. A hook that is replaced in
one of these classes takes effect in queues that are made later. To notice it in existing queues would take a
metaclass, which conflicts with a program's own metaclass, or a check in each call.

A property of the native class that the standard class lacks gives way: a subclass may keep an attribute of its own by
that name, as the standard class lets it.

A program's subclass of a class of `threading` runs the standard library's code (:mod:`unsnarl.sync.subclasses`). One
of a queue is native: the native queues have all the parts of the standard ones.

Invariant: these classes define only their module's name, the effect of setting an attribute, and which ones give way.
"""

from unsnarl import sync
from unsnarl.sync.subclasses import watch

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from typing import Any

    AnyQueue = sync.Queue[Any]
    AnyLifoQueue = sync.LifoQueue[Any]
    AnyPriorityQueue = sync.PriorityQueue[Any]
else:
    AnyQueue, AnyLifoQueue, AnyPriorityQueue = sync.Queue, sync.LifoQueue, sync.PriorityQueue

HOOKS = frozenset({"_init", "_qsize", "_put", "_get"})
"""Methods of `queue.Queue` that a subclass may override."""

__all__ = ["Barrier", "BoundedSemaphore", "Condition", "Event", "LifoQueue", "PriorityQueue", "Queue", "Semaphore"]


class GivesWay:
    """A property of a native class that an attribute of the instance hides: a descriptor without ``__set__``."""

    __slots__ = ("_native",)

    def __init__(self, native: "Any") -> None:
        """Take the native property."""
        self._native = native

    def __get__(self, instance: "Any", owner: "type | None" = None) -> "Any":
        """Return the native value; of the class, the descriptor."""
        return self if instance is None else self._native.__get__(instance, owner)


class Condition(sync.Condition):
    """`threading.Condition`, native."""

    __module__ = "threading"

    if not TYPE_CHECKING:
        waiting = GivesWay(sync.Condition.waiting)
        lock = GivesWay(sync.Condition.lock)


class Semaphore(sync.Semaphore):
    """`threading.Semaphore`, native."""

    __module__ = "threading"

    if not TYPE_CHECKING:
        value = GivesWay(sync.Semaphore.value)
        waiting = GivesWay(sync.Semaphore.waiting)


class BoundedSemaphore(sync.BoundedSemaphore, Semaphore):
    """`threading.BoundedSemaphore`, native."""

    __module__ = "threading"


class Event(sync.Event):
    """`threading.Event`, native."""

    __module__ = "threading"

    if not TYPE_CHECKING:
        waiting = GivesWay(sync.Event.waiting)


class Barrier(sync.Barrier):
    """`threading.Barrier`, native."""

    __module__ = "threading"

    if not TYPE_CHECKING:
        waiting = GivesWay(sync.Barrier.waiting)


class Queue(AnyQueue):
    """`queue.Queue`, native; not iterable, as the standard one: iteration would empty the queue, or wait."""

    __module__ = "queue"

    if not TYPE_CHECKING:
        __iter__ = __aiter__ = __len__ = None
        waiting = GivesWay(sync.Queue.waiting)

        def __setattr__(self, name: str, value: object) -> None:
            """Set the attribute; if it is a hook, the queue calls it from now on."""
            super().__setattr__(name, value)
            if name in HOOKS:
                self._look_hooks_up()


class LifoQueue(AnyLifoQueue, Queue):
    """`queue.LifoQueue`, native."""

    __module__ = "queue"


class PriorityQueue(AnyPriorityQueue, Queue):
    """`queue.PriorityQueue`, native."""

    __module__ = "queue"


for _class in (Condition, Semaphore, BoundedSemaphore, Event, Barrier):
    watch(_class)
