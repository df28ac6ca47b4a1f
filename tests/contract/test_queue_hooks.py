"""The hooks of a subclass are called as often as the standard library calls them.

Invariant: a test that is parametrised over the standard library's class too asserts that class's own behaviour. No
test sleeps: time passes only within `get` or `put`.
"""

from __future__ import annotations

import asyncio
import queue
import time
from typing import Any

import pytest

import unsnarl
from unsnarl.sync import standard

QUEUES = [queue.Queue, unsnarl.Queue, standard.Queue]


def bag(make: Any, maxsize: int = 0) -> Any:
    """Make a queue over a set, which can be changed without the queue."""

    class Bag(make):  # type: ignore[misc]
        def _init(self, _maxsize: float) -> None:
            self.items = set[object]()

        def _qsize(self) -> int:
            return len(self.items)

        def _put(self, item: object) -> None:
            self.items.add(item)

        def _get(self) -> object:
            return self.items.pop()

    return Bag(maxsize)


@pytest.mark.parametrize("make", QUEUES)
def test_what_a_method_removed_is_not_there_to_get(make: Any) -> None:
    line = bag(make)
    line.put(1)
    line.items.discard(1)
    with pytest.raises(queue.Empty):
        line.get_nowait()


@pytest.mark.parametrize("make", QUEUES)
def test_what_a_method_removed_leaves_room(make: Any) -> None:
    line = bag(make, 1)
    line.put(1)
    line.items.discard(1)
    line.put_nowait(2)
    assert line.items == {2}


@pytest.mark.parametrize("make", QUEUES)
def test_what_a_method_added_can_be_got_and_takes_room(make: Any) -> None:
    line = bag(make, 1)
    line.items.add(1)
    with pytest.raises(queue.Full):
        line.put_nowait(2)
    assert line.get_nowait() == 1


@pytest.mark.parametrize("make", QUEUES)
def test_a_count_that_is_said_otherwise_decides(make: Any) -> None:
    class Ending(make):  # type: ignore[misc]
        has_ended = False

        def _qsize(self) -> int:
            return 1 if self.has_ended else super()._qsize()

        def _get(self) -> object:
            if self.has_ended:
                raise StopIteration
            return super()._get()

    line = Ending()
    line.has_ended = True
    with pytest.raises(StopIteration):
        line.get_nowait()


def delayed(make: Any, due_s: float) -> Any:
    """Make a queue with room for one item, and one in it; the item, or the room after it, counts from `due_s` on."""
    due = time.monotonic() + due_s

    class Delayed(make):  # type: ignore[misc]
        hides_items = True

        def _qsize(self) -> int:
            if time.monotonic() < due:
                return 0 if self.hides_items else 1
            return super()._qsize() if self.hides_items else 0

    line = Delayed(1)
    line.put("item")
    return line


@pytest.mark.parametrize("make", QUEUES)
def test_what_becomes_due_during_a_wait_is_got_in_the_end(make: Any) -> None:
    assert delayed(make, 0.02).get(timeout=0.1) == "item"


@pytest.mark.parametrize("make", QUEUES)
def test_what_has_room_by_the_end_of_a_wait_is_put(make: Any) -> None:
    line = delayed(make, 0.02)
    line.hides_items = False
    line.put("another", timeout=0.1)


def test_batches_and_tasks_look_once_more_as_well() -> None:
    make = unsnarl.Queue
    assert delayed(make, 0.02).get_many(2, timeout=0.1) == ["item"]
    line = delayed(make, 0.02)
    line.hides_items = False
    line.put_many(["another"], timeout=0.1)

    async def look() -> list[object]:
        got = [await delayed(make, 0.02).async_get(timeout=0.1), *await delayed(make, 0.02).async_get_many(2, 0.1)]
        for put in ["async_put", "async_put_many"]:
            line = delayed(make, 0.02)
            line.hides_items = False
            await getattr(line, put)(["another"], timeout=0.1)
        return got

    assert asyncio.run(look()) == ["item", "item"]
