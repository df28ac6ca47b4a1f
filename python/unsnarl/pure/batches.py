"""Many items in one call.

Invariant: an exception that ends a batch says how many items were put: `args[0]` of Full and ShutDown, `put` of others.
"""

# The classes of a family share their state.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import queue_timeout, task_timeout
from unsnarl.pure.channel import Channel, error
from unsnarl.pure.parties import Waiter, block, suspend, wake


class Batch:
    """Items on their way into a queue."""

    def __init__(self, queue: Channel, items: Iterable[Any]) -> None:
        self._queue = queue
        self._items = list(items)
        self.put = 0

    def attempt(self, _waiter: Waiter | None) -> bool:
        """Put as many items as there is room for; False if some are left."""
        before = self.put
        try:
            while self.put < len(self._items):
                if not self._queue._try_put(self._items[self.put]):
                    return False
                self.put += 1
        finally:
            if self.put > before:
                self._queue._tell(0, self.put - before)
        return True

    def note(self, raised: BaseException) -> None:
        """Write to an exception how many items were put."""
        try:
            if isinstance(raised, (type(error("Full")), type(error("ShutDown")))):
                raised.args = (self.put,)
            else:
                raised.put = self.put  # type: ignore[attr-defined]
        except AttributeError:  # its class accepts no attributes
            pass


class Batches(Channel):
    """The methods for many items."""

    __slots__ = ()

    def put_many(self, items: Iterable[Any], block: bool = True, timeout: float | None = None) -> None:
        """Put all items, waiting for room as often as needed. Full after the timeout (seconds), or ShutDown."""
        seconds = queue_timeout(block, timeout)
        batch = Batch(self, items)
        try:
            if not self._at_once(batch.attempt) and (seconds == 0 or not self._wait_to_put(batch, seconds)):
                raise error("Full")
        except BaseException as raised:
            batch.note(raised)
            raise

    def _wait_to_put(self, batch: Batch, seconds: float | None) -> bool:
        return block(self, seconds, (self._putters, batch.attempt)) is not None or self._at_once(batch.attempt)

    def async_put_many(self, items: Iterable[Any], timeout: float | None = None) -> Any:
        """Put all items in a task; any exception that ends it says how many were put."""
        return self._async_put_many(Batch(self, items), task_timeout(timeout))

    async def _async_put_many(self, batch: Batch, seconds: float | None) -> None:
        try:
            if self._at_once(batch.attempt):
                return
            request = self._putters, batch.attempt
            waited = seconds != 0 and await suspend(self, seconds, identity.task_if_any(), request) is not None
            if not waited and not self._at_once(batch.attempt):
                raise error("Full")
        except BaseException as raised:
            batch.note(raised)
            raise

    def get_many(self, count: int, block: bool = True, timeout: float | None = None) -> list[Any]:
        """Wait for an item, and take as many more as are there, up to count."""
        seconds = queue_timeout(block, timeout)
        found = self._take_many(count)
        if found is None and seconds != 0:
            found = self._wait_to_get(count, seconds)
        if found is None:
            raise error("Empty")
        return found

    def _wait_to_get(self, count: int, seconds: float | None) -> list[Any] | None:
        waiter = block(self, seconds, (self._getters, self._attempt_many(count)))
        return self._take_many(count) if waiter is None else waiter.result

    def async_get_many(self, count: int, timeout: float | None = None) -> Any:
        """Wait for an item in a task, and take as many more as are there; a cancelled call has got nothing."""
        return self._async_get_many(count, task_timeout(timeout))

    async def _async_get_many(self, count: int, seconds: float | None) -> list[Any]:
        found = self._take_many(count)
        if found is None and seconds != 0:
            request = self._getters, self._attempt_many(count)
            waiter = await suspend(self, seconds, identity.task_if_any(), request)
            found = self._take_many(count) if waiter is None else waiter.result
        if found is None:
            raise error("Empty")
        return found

    def _attempt_many(self, count: int) -> Any:
        def attempt(waiter: Waiter) -> bool:
            waiter.result = self._get_up_to(count)
            return waiter.result is not None

        return attempt

    def _take_many(self, count: int) -> list[Any] | None:
        """Get what is there, without waiting; None if there is nothing."""
        found: list[Any] | None = self._now(lambda: self._get_up_to(count))
        return found

    def _get_up_to(self, count: int) -> list[Any] | None:
        """Get items with the mutex held; None if there is none, ShutDown if the queue is closed too."""
        if count < 0:
            raise OverflowError("can't convert negative int to unsigned")
        items: list[Any] = []
        try:
            while len(items) < count and self._qsize():
                items.append(self._get())
        except BaseException as raised:
            if items:
                raised.got = items  # type: ignore[attr-defined]
            raise
        if items:
            self._tell(1, len(items))
        elif count and self._closed:
            raise error("ShutDown")
        return items if items or count == 0 else None

    def _at_once(self, attempt: Any) -> bool:
        return bool(self._now(lambda: attempt(None)))

    def _now(self, step: Any) -> Any:
        """Do a step with the mutex held, and wake those for whom it has changed something."""
        woken: list[Waiter] = []
        try:
            with self.mutex:
                try:
                    return step()
                finally:
                    woken = self._changed()
        finally:
            wake(woken)
