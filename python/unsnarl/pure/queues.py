"""Queue, LifoQueue, PriorityQueue and SimpleQueue, with the hooks and attributes of the standard library's.

Invariant: the hooks `_init`, `_qsize`, `_put` and `_get` are called with `mutex` held.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from types import GenericAlias
from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import capacity, is_too_long, queue_timeout, task_timeout, wait_timeout
from unsnarl.pure.batches import Batches
from unsnarl.pure.channel import error
from unsnarl.pure.descriptions import public
from unsnarl.pure.parties import Waiter, block, suspend, wake


class Queue(Batches):
    """A first-in-first-out queue for threads, tasks and greenlets.

    `put` raises `Full` and `get` `Empty` after the timeout (seconds), `ShutDown` once the queue is shut down.
    Fairness: the party that has waited longest is notified first; one that runs may overtake it.
    Cancellation: a cancelled call has put or got nothing.
    """

    __slots__ = ("__weakref__", "_maxsize")

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a queue without a bound, until `__init__` runs."""
        queue = object.__new__(cls)
        queue._start()
        queue._maxsize = 0
        queue._init(0)
        return queue

    def __init__(self, maxsize: int = 0) -> None:
        with self.mutex:
            self.maxsize = maxsize
            self._unfinished, self._closed = 0, False
            self._init(maxsize)
        self._recount()

    def _init(self, _maxsize: int) -> None:
        self.queue = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an item, waiting for room if need be; Full after the timeout (seconds)."""
        if timeout is not None and self._capacity:
            self._check(block, timeout)
        if self._put_now(item):
            return
        seconds = queue_timeout(block, timeout)
        if seconds != 0 and (own := self._own_wait(1)) is not None:
            own.put(self, item, timeout)
        else:
            self._put_later(item, seconds)

    def _check(self, block: bool, timeout: float) -> None:
        """Refuse a timeout before it could matter, unless it is only too long; a closed queue says so first."""
        if not self._closed and not is_too_long(timeout):
            queue_timeout(block, timeout)

    def _put_now(self, item: Any) -> bool:
        with self.mutex:
            if not self._try_put(item):
                return False
            if self._conditions is not None:
                self._tell(0)
            if not self._getters.idle:
                return True
            woken = self._changed()
        wake(woken)
        return True

    def _put_request(self, item: Any) -> Any:
        def attempt(_waiter: Waiter) -> bool:
            has_put = self._try_put(item)
            if has_put:
                self._tell(0)
            return has_put

        return self._putters, attempt

    def _put_later(self, item: Any, seconds: float | None) -> None:
        waited = seconds != 0 and block(self, seconds, self._put_request(item)) is not None
        if not waited and not self._put_now(item):  # another party may have been notified in its place
            raise error("Full")

    def put_nowait(self, item: Any) -> None:
        """Put an item; Full if there is no room."""
        self.put(item, False)

    def green_put(self, item: Any, blocking: bool = True, timeout: float | None = None) -> None:
        """Put an item; as `put`."""
        self.put(item, blocking, timeout)

    def async_put(self, item: Any, timeout: float | None = None, blocking: bool = True) -> Any:
        """Put an item in a task; Full after the timeout (seconds)."""
        return self._async_put(item, task_timeout(timeout, blocking))

    async def _async_put(self, item: Any, seconds: float | None) -> None:
        if self._put_now(item):
            return
        request = self._put_request(item)
        waited = seconds != 0 and await suspend(self, seconds, identity.task_if_any(), request) is not None
        if not waited and not self._put_now(item):
            raise error("Full")

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Get an item, waiting for one if need be; Empty after the timeout (seconds)."""
        if timeout is not None:
            self._check(block, timeout)
        with self.mutex:
            if self._qsize():
                item = self._get()
                if self._conditions is not None:
                    self._tell(1)
                if not self._putters.idle:
                    return item
                woken = self._changed()
            elif self._closed:
                raise error("ShutDown")
            else:
                item, woken = None, None
        if woken is not None:
            wake(woken)
            return item
        seconds = queue_timeout(block, timeout)
        if seconds != 0 and (own := self._own_wait(0)) is not None:
            return own.get(self, timeout)
        return self._get_later(seconds)

    def _get_request(self) -> Any:
        def attempt(waiter: Waiter) -> bool:
            has_got = self._try_get(waiter)
            if has_got:
                self._tell(1)
            return has_got

        return self._getters, attempt

    def _get_later(self, seconds: float | None) -> Any:
        if seconds == 0:
            raise error("Empty")
        waiter = block(self, seconds, self._get_request())
        return self._last_attempt() if waiter is None else waiter.result

    def _last_attempt(self) -> Any:
        """Get an item without waiting: another party may have been notified in the caller's place."""
        found = self._take_many(1)
        if found is None:
            raise error("Empty")
        return found[0]

    def get_nowait(self) -> Any:
        """Get an item; Empty if there is none."""
        return self.get(False)

    def green_get(self, blocking: bool = True, timeout: float | None = None) -> Any:
        """Get an item; as `get`."""
        return self.get(blocking, timeout)

    def async_get(self, timeout: float | None = None, blocking: bool = True) -> Any:
        """Get an item in a task; Empty after the timeout (seconds)."""
        return self._async_get(task_timeout(timeout, blocking))

    async def _async_get(self, seconds: float | None) -> Any:
        found = self._take_many(1)
        if found is not None:
            return found[0]
        if seconds == 0:
            raise error("Empty")
        waiter = await suspend(self, seconds, identity.task_if_any(), self._get_request())
        return self._last_attempt() if waiter is None else waiter.result

    def peek(self) -> Any:
        """Return the next item without removing it; Empty if there is none."""
        with self.mutex:
            if not self.queue:
                raise error("Empty")
            return self.queue[self._next_index()]

    def _next_index(self) -> int:
        return 0

    def clear(self) -> int:
        """Drop every item, and count it as done; return their number."""
        return len(self._now(self._drain))

    def _drain(self) -> list[Any]:
        items: list[Any] = []
        try:
            while self._qsize():
                items.append(self._get())
        finally:
            self._unfinished = max(0, self._unfinished - len(items))
            self._tell(1, len(items))
            if self._unfinished == 0:
                self._tell(2, len(self._conditions[2]._waiters) if self._conditions else 0)
        return items

    def qsize(self) -> int:
        """Return the number of items, which may have changed by the time you use it."""
        with self.mutex:
            return self._qsize()

    def empty(self) -> bool:
        """Return whether there is no item."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Return whether there is no room."""
        return 0 < self._capacity <= self.qsize()

    def task_done(self) -> None:
        """Report that an item that was got before is done."""

        def done() -> None:
            if self._unfinished <= 0:
                raise ValueError("task_done() called too many times")
            self._unfinished -= 1
            if self._unfinished == 0 and self._conditions is not None:
                self._tell(2, len(self._conditions[2]._waiters))

        self._now(done)

    def _is_done(self, _waiter: Any) -> bool:
        return self._unfinished == 0

    def join(self, timeout: float | None = None) -> bool | None:
        """Wait until every item was reported done; with a timeout (seconds), return whether that happened."""
        seconds = wait_timeout(timeout)
        if seconds != 0 and (own := self._own_wait(2)) is not None:
            done: bool = own.join(self, timeout)
            return None if timeout is None else done
        done = self._unfinished == 0 or (
            seconds != 0 and block(self, seconds, (self._joiners, self._is_done)) is not None
        )
        return None if timeout is None else done

    def async_join(self, timeout: float | None = None) -> Any:
        """Wait in a task until every item was reported done; False if the timeout (seconds) passed first."""
        return self._async_join(task_timeout(timeout))

    async def _async_join(self, seconds: float | None) -> bool:
        if self._unfinished == 0:
            return True
        request = self._joiners, self._is_done
        return seconds != 0 and await suspend(self, seconds, identity.task_if_any(), request) is not None

    def shutdown(self, immediate: bool = False) -> None:
        """Close the queue: `put` raises ShutDown, and `get` too once it is empty, or at once if immediate."""

        def close() -> None:
            self._closed = True
            try:
                if immediate:
                    self._drain()
            finally:
                for index in range(3 if immediate else 2):
                    self._tell(index, len(self._conditions[index]._waiters) if self._conditions else 0)

        self._now(close)

    @property
    def is_shutdown(self) -> bool:
        """Whether the queue was shut down."""
        return self._closed

    @is_shutdown.setter
    def is_shutdown(self, is_shutdown: bool) -> None:
        if is_shutdown:
            self.shutdown()
        else:
            self._closed = False

    @property
    def maxsize(self) -> Any:
        """The maximal number of items; 0 or less is unbounded."""
        return self._maxsize

    @maxsize.setter
    def maxsize(self, maxsize: Any) -> None:
        self._capacity = capacity(maxsize)
        self._maxsize = maxsize

    @property
    def unfinished_tasks(self) -> int:
        """Number of items that were put and not yet reported done."""
        return self._unfinished

    @unfinished_tasks.setter
    def unfinished_tasks(self, unfinished: int) -> None:
        self._unfinished = unfinished
        self._recount()

    @property
    def waiting(self) -> int:
        """Number of parties that wait to get, to put, or for the items to be done."""
        return len(self._getters) + len(self._putters) + len(self._joiners)

    def statistics(self) -> dict[str, int]:
        """Describe the queue's state."""
        return {
            "size": self.qsize(),
            "maxsize": self._capacity,
            "unfinished": self._unfinished,
            "getting": len(self._getters),
            "putting": len(self._putters),
            "joining": len(self._joiners),
        }

    def _waiting(self) -> tuple[int, int, int]:
        """Return how many parties wait to get, to put, and for the items to be done."""
        return len(self._getters), len(self._putters), len(self._joiners)

    def _recount(self) -> None:
        """Let waiters re-check, after the program has changed the queue."""
        self._now(lambda: None)

    def _look_hooks_up(self) -> None:
        """Do nothing: every call looks its hooks up."""

    def _condition(self, index: int) -> Any:
        if self._conditions is None:
            from unsnarl.sync.queue_conditions import conditions

            self._conditions = conditions(self)  # type: ignore[arg-type]
        return self._conditions[index]

    def _own_wait(self, index: int) -> Any:
        """Return the module that waits by the program's own `wait`, if the program has given one to this condition."""
        if self._conditions is None or "wait" not in vars(self._conditions[index]):
            return None
        from unsnarl.sync import queue_conditions

        return queue_conditions

    @property
    def not_empty(self) -> Any:
        """The condition that is notified when an item was put; over `mutex`."""
        return self._condition(0)

    @property
    def not_full(self) -> Any:
        """The condition that is notified when an item was got; over `mutex`."""
        return self._condition(1)

    @property
    def all_tasks_done(self) -> Any:
        """The condition that is notified when every item was reported done; over `mutex`."""
        return self._condition(2)

    def __len__(self) -> int:
        """Return the number of items."""
        return self.qsize()

    def __bool__(self) -> bool:
        """Return True; for a subclass with a length of its own, whether that is not zero."""
        length: Any = type(self).__len__
        return length is None or length is Queue.__len__ or len(self) != 0

    def __iter__(self) -> Any:
        """Return the queue: each step gets an item."""
        return self

    def __next__(self) -> Any:
        """Get the next item; the iteration ends when the queue is shut down and empty."""
        try:
            return self.get()
        except type(error("ShutDown")):
            raise StopIteration from None

    def __aiter__(self) -> Any:
        """Return the queue: each step gets an item in a task."""
        return self

    async def __anext__(self) -> Any:
        """Get the next item in a task; the iteration ends when the queue is shut down and empty."""
        try:
            return await self._async_get(None)
        except type(error("ShutDown")):
            raise StopAsyncIteration from None

    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """Return the class for items of a kind."""
        return GenericAlias(cls, item)

    def __repr__(self) -> str:
        """Return the class."""
        return f"<unsnarl.{type(self).__name__} object at {id(self):#x}>"


class LifoQueue(Queue):
    """A last-in-first-out queue. All else, fairness and cancellation included: as `Queue`."""

    __slots__ = ()

    def _init(self, _maxsize: int) -> None:
        self.queue = []

    def _get(self) -> Any:
        return self.queue.pop()

    def _next_index(self) -> int:
        return -1


class PriorityQueue(Queue):
    """A queue that returns the least item first.

    Items are compared with `<`, behind `mutex`; an exception of a comparison is raised by `put` or `get`. All else,
    fairness and cancellation included: as `Queue`.
    """

    __slots__ = ()

    def _init(self, _maxsize: int) -> None:
        self.queue = []

    def _put(self, item: Any) -> None:
        heappush(self.queue, item)

    def _get(self) -> Any:
        return heappop(self.queue)


class SimpleQueue(Queue):
    """An unbounded queue whose `put` never waits.

    All else, fairness and cancellation included: as `Queue`.
    """

    __slots__ = ()

    def __init__(self) -> None:
        pass


public(Queue, LifoQueue, PriorityQueue, SimpleQueue)
