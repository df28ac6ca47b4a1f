"""Queue: pickled objects on a bounded queue of bytes.

Objects of exactly the types int, float, str, bytes, bool or None travel without pickle, by native code.

Invariant: `put` returns after the item is in shared memory, whole; a `put` that raises has
put nothing.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from unsnarl._native import IpcBytesQueue
from unsnarl.ipc import tasks
from unsnarl.sync import ShutDown

_PLAIN = frozenset((int, float, str, bytes, bool, type(None)))
"""Types whose pickles depend on nothing else; an object is pickled if it is too large for a word or for the free
room."""


def _reducers() -> Mapping[type, Any]:
    """Return pickle's reducers by class, multiprocessing's own first; a view, so never a stale copy."""
    from multiprocessing.reduction import ForkingPickler

    extra: dict[type, Any] = getattr(ForkingPickler, "_extra_reducers", {})
    return ChainMap(extra, copyreg.dispatch_table)


def dumps(item: object) -> bytes:
    """Pickle an item as multiprocessing would: connections and the like by multiprocessing's reducers."""
    if type(item) in _PLAIN:
        return pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _reducers()
    pickler.dump(item)
    return buffer.getvalue()


class Queue(IpcBytesQueue):
    """A bounded queue of objects between processes.

    ``maxsize`` bounds the number of items (0: no bound), ``capacity`` their bytes. An item is put and taken whole or
    not at all, whichever process is killed.

    Fairness: none between processes; items come out in the order they went in.
    Cancellation: a cancelled get has taken nothing, a cancelled put has put nothing.
    """

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
        """Put an item at the end.

        Raises:
            Full: there is no room, or there was none in time (seconds).
            ShutDown: after `shutdown`.
            ValueError: the pickled item is longer than the queue.
        """
        if not self._put_plain(item):
            self.put_bytes(dumps(item), block, timeout)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the oldest item.

        Raises:
            Empty: there is none, or there was none in time (seconds).
            ShutDown: there will be none.
        """
        return self._get_object(block, timeout)

    def put_nowait(self, item: object) -> None:
        """Put an item at the end, or raise Full."""
        self.put(item, False)

    def get_nowait(self) -> Any:
        """Take the oldest item, or raise Empty."""
        return self.get(False)

    async def async_put(self, item: object, timeout: float | None = None) -> None:
        """Put an item at the end from a task."""
        await tasks.put(self, dumps(item), timeout)

    async def async_get(self, timeout: float | None = None) -> Any:
        """Take the oldest item in a task."""
        return await tasks.get(self, timeout)

    def __aiter__(self) -> Queue:
        """Take items until the queue is shut down and empty."""
        return self

    async def __anext__(self) -> Any:
        """Take the next item."""
        try:
            return await self.async_get()
        except ShutDown:
            raise StopAsyncIteration from None
