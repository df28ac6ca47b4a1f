"""Queue and JoinableQueue with the methods and manners of multiprocessing's.

There a ``put`` without ``maxsize`` never waits: a thread feeds a pipe from a buffer. Here
items go straight into shared memory; the buffer and its thread exist only while that is
full. An item too long for the queue travels in a file of its own.

Invariant: the items of one process come out in the order in which it put them.
"""

from __future__ import annotations

import collections
import os
import pickle
import tempfile
import threading
import time
import traceback
from multiprocessing import util
from typing import Any

from unsnarl import sync
from unsnarl._native import IpcBytesQueue, ipc_directory
from unsnarl.ipc import tasks
from unsnarl.ipc.queue import dumps

CAPACITY = 64 << 20
"""Bytes of a queue; memory is taken as it is used."""


class _Feeder:
    """What this process could not put at once."""

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
        """Put the item later, behind those that wait already."""
        with self._ready:
            self._items.append(item)
            if self._thread is None:
                thread = threading.Thread(target=self._feed, name="unsnarl-ipc-feeder", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    self._items.pop()
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
            with self._ready:
                self._items.popleft()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until everything is in shared memory."""
        with self._ready:
            return self._ready.wait_for(lambda: self._thread is None, timeout)

    def cancel(self) -> None:
        """Let the process end without waiting for what is not put yet."""
        with self._ready:
            self._is_cancelled = True
            if self._end is not None:
                self._end.cancel()
                self._end = None


class ProcessQueue:
    """A queue with the methods of `multiprocessing.Queue`."""

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
        # Of two threads that come at once, both get the one that is entered first.
        return self._feeders.get(pid) or self._feeders.setdefault(pid, _Feeder(self._ring))

    def put(self, obj: object, block: bool = True, timeout: float | None = None) -> None:
        """Put an item at the end; Full if there are maxsize already (and still, after a timeout in seconds).

        One that cannot be pickled is left out, and stderr has the traceback, as with
        multiprocessing's: it finds out in a thread. `unsnarl.ipc.Queue` raises.
        """
        if self._is_closed:
            raise ValueError(f"Queue {self!r} is closed")
        # Without a feeder nothing of this process waits to be put.
        if not self._feeders and self._put_plain(obj):
            self._has_put = True
            return
        self._has_put = True
        try:
            data = dumps(obj)
        except Exception as error:  # noqa: BLE001 - whatever its own code raises
            self._on_queue_feeder_error(error, obj)
            return
        item = _packed(data, self._ring.longest)
        if self._ring.maxsize:
            self._ring.put_bytes(item, block, timeout)
            return
        self._put_or_feed(item)

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
        return self._get_object(block, timeout)

    def put_nowait(self, obj: object) -> None:
        """Put an item at the end, or raise Full."""
        self.put(obj, False)

    def get_nowait(self) -> Any:
        """Take the oldest item, or raise Empty."""
        return self.get(False)

    async def async_put(self, obj: object, timeout: float | None = None) -> None:
        """Put an item at the end from a task; Full if there were maxsize until the timeout (seconds).

        Multiprocessing has no such method to be like: what cannot be pickled raises.
        """
        if self._is_closed:
            raise ValueError(f"Queue {self!r} is closed")
        item = _packed(dumps(obj), self._ring.longest)
        self._has_put = True
        if self._ring.maxsize:
            await tasks.put(self._ring, item, timeout)
        else:
            self._put_or_feed(item)

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
        """Tell whether there are as many as there may be."""
        return self._ring.full()

    def statistics(self) -> dict[str, Any]:
        """Describe the queue's state."""
        return self._ring.statistics()

    def close(self) -> None:
        """Say that this process puts and gets no more."""
        self._is_closed = True

    def join_thread(self) -> None:
        """Wait until all that this process put is in shared memory; after `close`."""
        assert self._is_closed, f"Queue {self!r} not closed"
        self._own_feeder().join()

    def cancel_join_thread(self) -> None:
        """Let the process end without waiting for what is not put yet."""
        self._own_feeder().cancel()


class JoinableQueue(ProcessQueue):
    """A queue that can be waited for until every item is dealt with."""

    def task_done(self) -> None:
        """Say that an item taken before is dealt with; ValueError if all are."""
        self._ring.task_done()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until every item is dealt with; False if the timeout (seconds) passed first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._own_feeder().join(timeout):
            return False
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self._ring.join(left)


def _rebuild(cls: type[ProcessQueue], ring: IpcBytesQueue) -> ProcessQueue:
    return cls(ring=ring)


class _Spilled:
    """An item that travels in a file of its own: unpickling it reads the file and removes it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_back, (self._path,)


def _packed(data: bytes, longest: int) -> bytes:
    """Return the item's pickle, or that of the file that holds it."""
    if len(data) <= longest:
        return data
    directory = ipc_directory()
    where = directory if os.path.isdir(directory) else None
    descriptor, path = tempfile.mkstemp(prefix=f"unsnarl-{os.geteuid()}-item-", dir=where)
    with open(descriptor, "wb") as file:
        file.write(data)
    return pickle.dumps(_Spilled(path))


def _read_back(path: str) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    return pickle.loads(data)
