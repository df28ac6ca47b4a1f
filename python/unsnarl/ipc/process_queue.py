"""Queue and JoinableQueue with the methods and behaviour of multiprocessing's.

In multiprocessing a ``put`` without ``maxsize`` never waits: a thread feeds a pipe from a buffer. Here items go
straight into shared memory; the buffer and its thread exist only while that is full. An item too long for the queue
travels in a separate file.

Invariant: the items of one process come out in the order in which it put them.
"""

from __future__ import annotations

import collections
import os
import threading
import traceback
from multiprocessing import queues as stock
from multiprocessing import util
from typing import TYPE_CHECKING, Any

from unsnarl import sync
from unsnarl._native import IpcBytesQueue
from unsnarl.ipc import tasks
from unsnarl.ipc.queue import dumps
from unsnarl.ipc.spill import SpilledItem

CAPACITY = 64 << 20
"""Bytes of a queue; memory is allocated as it is used."""
SPILLED_FROM = 4096
"""Bytes from which an item may go into a file: the reference to the file is not much shorter."""


class _Feeder:
    """The items that this process could not put immediately."""

    def __init__(self, ring: IpcBytesQueue) -> None:
        self._ring = ring
        self._ready = threading.Condition()
        self._items: collections.deque[bytes] = collections.deque()
        self._thread: threading.Thread | None = None
        self._end: Any = None
        self._is_cancelled = False

    def is_idle(self) -> bool:
        """Tell whether everything is in shared memory."""
        return not self._items

    def add(self, item: bytes) -> None:
        """Put the item later, after the items that already wait; `join` of the queue waits for it from now on."""
        with self._ready:
            self._ring._promise()
            self._items.append(item)
            if self._thread is None:
                thread = threading.Thread(target=self._feed, name="unsnarl-ipc-feeder", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    self._items.pop()
                    self._ring._resolve()
                    raise
                self._thread = thread
            if self._end is None and not self._is_cancelled:
                self._end = util.Finalize(self, _Feeder.join, args=(self,), exitpriority=-5)

    def _feed(self) -> None:
        while True:
            with self._ready:
                if not self._items:
                    self._thread = None
                    self._ready.notify_all()
                    return
                item = self._items[0]
            self._ring.put_bytes(item)
            self._ring._resolve()
            with self._ready:
                self._items.popleft()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until everything is in shared memory."""
        with self._ready:
            return self._ready.wait_for(lambda: self._thread is None, timeout)

    def cancel(self) -> None:
        """Let the process end without waiting for items that are not put yet."""
        with self._ready:
            self._is_cancelled = True
            if self._end is not None:
                self._end.cancel()
                self._end = None


class _NoPipe:
    """What stands for the writing end of the pipe, which a queue in shared memory does not have.

    Programs close it after `join_thread`, as a remedy for issue 42752 of CPython (dask.distributed's own tests do).
    """

    @staticmethod
    def close() -> None:
        """Close nothing: other processes, and items already put, are unaffected, as in multiprocessing."""


if TYPE_CHECKING:
    StockQueue = stock.Queue[Any]
    StockJoinableQueue = stock.JoinableQueue[Any]
else:
    StockQueue, StockJoinableQueue = stock.Queue, stock.JoinableQueue


class ProcessQueue(StockQueue):
    """A queue with the methods of `multiprocessing.Queue`.

    It is a subclass only because some callers check the class (`logging.config` does); it inherits no behaviour.
    """

    _writer = _NoPipe()

    def __init__(self, maxsize: int = 0, *, ring: IpcBytesQueue | None = None) -> None:
        self._ring = IpcBytesQueue(max(0, maxsize), capacity=CAPACITY) if ring is None else ring
        self._put_plain, self._get_object = self._ring._put_plain, self._ring._get_object
        self._feeders: dict[int, _Feeder] = {}
        self._is_closed = False
        self._has_put = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the shared memory alone."""
        return _rebuild, (type(self), self._ring)

    def _own_feeder(self) -> _Feeder:
        """Return this process's feeder: a forked child has none of its parent's items."""
        pid = os.getpid()
        # If two threads arrive at the same time, both get the feeder that is entered first.
        return self._feeders.get(pid) or self._feeders.setdefault(pid, _Feeder(self._ring))

    def put(self, obj: object, block: bool = True, timeout: float | None = None) -> None:
        """Put an item at the end; Full if there are maxsize already (and still, after a timeout in seconds).

        An item that cannot be pickled is dropped, with a traceback on stderr, as in multiprocessing, which pickles in
        a thread. `unsnarl.ipc.Queue` raises.
        """
        if self._is_closed:
            raise ValueError(f"Queue {self!r} is closed")
        # Without a feeder no item of this process is waiting.
        if not self._feeders and self._put_plain(obj):
            self._has_put = True
            return
        self._has_put = True
        try:
            data = dumps(obj)
        except Exception as error:  # noqa: BLE001 - any exception of the object's own code
            self._on_queue_feeder_error(error, obj)
            return
        if len(data) > self._ring.longest:
            self._put_spilled(SpilledItem(data), bool(block), timeout)
        elif self._ring.maxsize:
            self._put_bounded(data, bool(block), timeout)
        else:
            self._put_or_feed(data)

    def _put_bounded(self, data: bytes, block: bool, timeout: float | None) -> None:
        """Wait only for one of maxsize places: if bytes are missing, the item goes into a file."""
        try:
            self._ring.put_bytes(data, False)
        except sync.Full:
            are_bytes_scarce = len(data) * self._ring.maxsize > self._ring.capacity
            if len(data) > SPILLED_FROM and (not self._ring.full() or (are_bytes_scarce and block)):
                self._put_spilled(SpilledItem(data), block, timeout)
            elif block:
                self._ring.put_bytes(data, True, _waited(timeout))
            else:
                raise

    def _put_spilled(self, item: SpilledItem, block: bool, timeout: float | None) -> None:
        try:
            if self._ring.maxsize:
                self._ring.put_bytes(item.pickled(), block, _waited(timeout))
            else:
                self._put_or_feed(item.pickled())
        except BaseException:
            item.remove()
            raise

    @staticmethod
    def _on_queue_feeder_error(error: Exception, obj: object) -> None:  # noqa: ARG004 - for who overrides it
        """Report an item that cannot be sent: what subclasses of multiprocessing's queue override."""
        traceback.print_exception(error)

    def _put_or_feed(self, item: bytes) -> None:
        feeder = self._own_feeder()
        if feeder.is_idle():
            try:
                self._ring.put_bytes(item, False)
                return
            except sync.Full:
                pass
        feeder.add(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the oldest item; Empty if there is none (in time, seconds)."""
        if self._is_closed:
            raise ValueError(f"Queue {self!r} is closed")
        return self._get_object(block, timeout if timeout is None else _waited(timeout))

    def put_nowait(self, obj: object) -> None:
        """Put an item at the end, or raise Full."""
        self.put(obj, False)

    def get_nowait(self) -> Any:
        """Take the oldest item, or raise Empty."""
        return self.get(False)

    async def async_put(self, obj: object, timeout: float | None = None) -> None:
        """Put an item at the end from a task; Full if there were maxsize until the timeout (seconds).

        multiprocessing has no such method to imitate: an item that cannot be pickled raises.
        """
        if self._is_closed:
            raise ValueError(f"Queue {self!r} is closed")
        data = dumps(obj)
        self._has_put = True
        if len(data) > self._ring.longest:
            await self._async_put_spilled(SpilledItem(data), timeout)
        elif self._ring.maxsize:
            await tasks.put(self._ring, data, timeout)
        else:
            self._put_or_feed(data)

    async def _async_put_spilled(self, item: SpilledItem, timeout: float | None) -> None:
        try:
            if self._ring.maxsize:
                await tasks.put(self._ring, item.pickled(), timeout)
            else:
                self._put_or_feed(item.pickled())
        except BaseException:
            item.remove()
            raise

    async def async_get(self, timeout: float | None = None) -> Any:
        """Take the oldest item in a task; Empty if there was none until the timeout (seconds)."""
        if self._is_closed:
            raise ValueError(f"Queue {self!r} is closed")
        return await tasks.get(self._ring, timeout)

    def qsize(self) -> int:
        """Return how many items are in shared memory."""
        return self._ring.qsize()

    def empty(self) -> bool:
        """Tell whether there are none; OSError after a put and `close`, as in the standard library."""
        if self._is_closed and self._has_put:
            raise OSError(f"Queue {self!r} is closed")
        return self._ring.empty()

    def full(self) -> bool:
        """Tell whether the number of items has reached maxsize."""
        return self._ring.full()

    def statistics(self) -> dict[str, Any]:
        """Describe the queue's state."""
        return self._ring.statistics()

    def close(self) -> None:
        """Declare that this process puts and gets no more items."""
        self._is_closed = True

    def join_thread(self) -> None:
        """Wait until all items that this process put are in shared memory; after `close`."""
        assert self._is_closed, f"Queue {self!r} not closed"
        self._own_feeder().join()

    def cancel_join_thread(self) -> None:
        """Let the process end without waiting for items that are not put yet."""
        self._own_feeder().cancel()


class JoinableQueue(ProcessQueue, StockJoinableQueue):
    """A queue whose `join` waits until every item is dealt with."""

    def task_done(self) -> None:
        """Count an item as dealt with; ValueError if all are."""
        self._ring.task_done()

    def join(  # type: ignore[override]
        self, timeout: float | None = None
    ) -> bool:
        """Wait until every item is dealt with; False if the timeout (seconds) passed first."""
        return self._ring.join(timeout)


def _waited(timeout: float | None) -> float | None:
    """Return a timeout as multiprocessing reads it: a negative timeout does not wait."""
    return timeout if timeout is None or timeout > 0 else 0.0


def _rebuild(cls: type[ProcessQueue], ring: IpcBytesQueue) -> ProcessQueue:
    return cls(ring=ring)
