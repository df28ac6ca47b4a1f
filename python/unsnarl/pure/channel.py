"""The core of the queues: a container with room for some items, and the parties that wait for an item or for room.

A waiting party is never handed an item: it is notified, and re-checks when it runs, so a running taker empties the
queue without a wake-up for each item. One notified thread is on its way at a time, and notifies the next when it has
re-checked. A task or a greenlet may not run for long; so each stands for one item only. A party that waits for all
items to be done is granted that, since the next item may come before it runs.

Invariant: if there is an item (or room), a party that waits for it has been notified, or none waits.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

from unsnarl.pure.descriptions import Named
from unsnarl.pure.parties import GRANTED, NOTIFIED, REFUSED, WAITING, Waiter, make_mutex, wake

MANY = 2**62
"""More items than there are."""


class Side:
    """The parties that wait for one thing.

    Attributes:
        idle: parties that were not notified, the longest waiting first.
        tasks, threads: how many were notified and have not re-checked; a thread that may pause is one of the tasks.
    """

    __slots__ = ("idle", "tasks", "threads")

    def __init__(self) -> None:
        self.idle: deque[Waiter] = deque()
        self.tasks = 0
        self.threads = 0

    def __len__(self) -> int:
        """Return how many parties wait."""
        return len(self.idle) + self.tasks + self.threads

    def notify(self, available: int, woken: list[Waiter]) -> None:
        """Notify parties while there is more than those on their way take care of."""
        while self.idle and self.threads == 0 and available > self.tasks:
            self._notify_first(woken)

    def notify_all(self, woken: list[Waiter]) -> None:
        """Notify every party."""
        while self.idle:
            self._notify_first(woken)

    def grant_all(self, woken: list[Waiter]) -> None:
        """Grant every party what it waits for: a later change does not take it away before the party runs."""
        while self.idle:
            first = self.idle.popleft()
            first.state = GRANTED
            woken.append(first)

    def _notify_first(self, woken: list[Waiter]) -> None:
        first = self.idle.popleft()
        first.state = NOTIFIED
        self._count(first, 1)
        woken.append(first)

    def _count(self, waiter: Waiter, step: int) -> None:
        if waiter.must_grant or waiter.may_pause:
            self.tasks += step
        else:
            self.threads += step

    def arrive(self, waiter: Waiter) -> None:
        """Count a notified party as one that re-checks now."""
        self._count(waiter, -1)
        waiter.state = WAITING

    def leave(self, waiter: Waiter) -> None:
        """Remove a party."""
        if waiter.state == NOTIFIED:
            self._count(waiter, -1)
        elif waiter in self.idle:
            self.idle.remove(waiter)


Attempt = Callable[[Waiter], bool]
"""Gets or puts with the mutex held, and writes what it got to the waiter; False if it must wait."""


class Channel(Named):
    """A container behind a mutex, and its three sides."""

    __slots__ = (
        "_capacity",
        "_closed",
        "_conditions",
        "_getters",
        "_joiners",
        "_putters",
        "_unfinished",
        "mutex",
        "queue",
    )

    mutex: Any
    queue: Any

    def _start(self) -> None:
        self.mutex = make_mutex()
        self.queue = None
        self._capacity = 0
        self._closed = False
        self._unfinished = 0
        self._getters, self._putters, self._joiners = Side(), Side(), Side()
        self._conditions: Any = None

    def _qsize(self) -> int:
        return len(self.queue)

    def _put(self, item: Any) -> None:
        self.queue.append(item)

    def _get(self) -> Any:
        return self.queue.popleft()

    def _room(self) -> int:
        return self._capacity - self._qsize() if self._capacity else MANY

    def _try_put(self, item: Any) -> bool:
        """Put an item with the mutex held; False if there is no room, ShutDown if the queue is closed."""
        if self._closed:
            raise error("ShutDown")
        if self._capacity and self._qsize() >= self._capacity:
            return False
        self._put(item)
        self._unfinished += 1
        return True

    def _try_get(self, waiter: Waiter) -> bool:
        """Get an item with the mutex held; False if there is none, ShutDown if the queue is closed too."""
        if self._qsize():
            waiter.result = self._get()
            return True
        if self._closed:
            raise error("ShutDown")
        return False

    def _changed(self) -> list[Waiter]:
        """Notify the parties for which there is an item or room now, with the mutex held; return those to wake."""
        woken: list[Waiter] = []
        if self._closed:
            self._getters.notify_all(woken)
            self._putters.notify_all(woken)
        if self._getters.idle:
            self._getters.notify(self._qsize(), woken)
        if self._putters.idle:
            self._putters.notify(self._room(), woken)
        if self._joiners.idle and self._unfinished == 0:
            self._joiners.grant_all(woken)
        return woken

    def _tell(self, index: int, number: int = 1) -> None:
        """Notify one of the conditions that the program has asked for: not_empty, not_full, all_tasks_done."""
        if self._conditions is not None:
            self._conditions[index]._pass_on(number)

    def _begin(self, waiter: Waiter) -> bool:
        side, attempt = waiter.request
        with self.mutex:
            if attempt(waiter):
                waiter.state = GRANTED
            else:
                side.idle.append(waiter)
            woken = self._changed()
        wake(woken)
        return waiter.state == GRANTED

    def _resume(self, waiter: Waiter) -> bool:
        side, attempt = waiter.request
        with self.mutex:
            if waiter.state == NOTIFIED:
                side.arrive(waiter)
                if attempt(waiter):
                    waiter.state = GRANTED
                else:
                    side.idle.appendleft(waiter)
            woken = self._changed()
        wake(woken)
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        with self.mutex:
            if waiter.state == GRANTED:
                return True
            waiter.request[0].leave(waiter)
            waiter.state = REFUSED
            woken = self._changed()
        wake(woken)
        return False

    def _give_back(self, waiter: Waiter) -> None:
        """Do nothing: a party gets an item only when it runs."""


def error(name: str, *arguments: Any) -> Exception:
    """Return an Empty, Full or ShutDown; if the program has replaced the class in `queue`, it is caught as either."""
    current = getattr(sys.modules.get("queue"), name, None)
    found: Exception = _error_classes().joined(getattr(_error_classes(), name), current)(*arguments)
    return found


@cache
def _error_classes() -> Any:
    """Return `unsnarl.sync.errors`, loaded on first use: `queue` may be a module of the program."""
    from unsnarl.sync import errors

    return errors
