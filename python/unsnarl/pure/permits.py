"""A number of permits and the queue of those who wait for one: the core of locks and semaphores.

A free permit is an entry of a list, since `list.pop` and `list.append` are one step under the GIL: a call that need not
wait takes no mutex. A party that must wait first enqueues itself and then tries again; a release first frees the permit
and then looks at the queue. So one of the two sees the other.

A permit is *granted* to tasks, greenlets, and threads that were overtaken once. Other threads are *notified*, and the
first party that runs acquires: handing every permit over would cost a switch of threads for each release.

Invariants: while a permit is free, no party to which it must be granted waits. Each free permit has at most one heir, a
thread that was notified and has not re-checked.
"""

from __future__ import annotations

from collections import deque

from unsnarl.pure.parties import GRANTED, NOTIFIED, REFUSED, WAITING, Waiter, make_mutex, wake

KEPT = 1024
"""The most permits that are entries of the list at first; further ones are only counted."""


class Permits:
    """Permits, and the parties that wait for one."""

    __slots__ = ("_free", "_heirs", "_mutex", "_queue", "_reserve")

    def _start(self, free: int) -> None:
        self._mutex = make_mutex()
        self._queue: deque[Waiter] = deque()
        self._heirs: set[Waiter] = set()
        self._free: list[None] = [None] * min(free, KEPT)
        self._reserve = max(0, free - KEPT)

    def _restart(self, free: int) -> None:
        """Continue with this number of free permits; parties that wait do so for these."""
        with self._mutex:
            self._free[:] = [None] * min(free, KEPT)
            self._reserve = max(0, free - KEPT)
        self._serve()

    def _free_count(self) -> int:
        return len(self._free) + self._reserve

    def _waiting_count(self) -> int:
        return len(self._queue) + len(self._heirs)

    def _waiters(self) -> list[Waiter]:
        with self._mutex:
            return list(self._queue)

    def _take(self) -> bool:
        try:
            self._free.pop()
        except IndexError:
            return self._reserve > 0 and self._take_reserve()
        return True

    def _take_reserve(self) -> bool:
        with self._mutex:
            moved = min(self._reserve, KEPT)
            self._reserve -= moved
            self._free.extend([None] * moved)
        return moved > 0 and self._take()

    def _put_back(self, count: int = 1) -> None:
        woken: list[Waiter] = []
        if self._queue:
            with self._mutex:
                count -= self._grant_up_to(count, woken)
        self._add(count)
        self._finish(woken)

    def _grant_up_to(self, count: int, woken: list[Waiter]) -> int:
        """Grant permits that are not free yet, with the mutex held; return how many."""
        granted = 0
        while granted < count and self._queue and self._queue[0].must_grant and not self._heirs:
            woken.append(self._grant(self._queue.popleft()))
            granted += 1
        return granted

    def _finish(self, woken: list[Waiter]) -> None:
        if self._queue:
            self._serve()
        if woken:
            wake(woken)

    def _add(self, count: int) -> None:
        if count == 1:
            self._free.append(None)
        elif count > 1:
            with self._mutex:
                self._free.extend([None] * min(count, KEPT))
                self._reserve += max(0, count - KEPT)

    def _serve(self) -> None:
        """Grant or notify while permits are free."""
        woken: list[Waiter] = []
        with self._mutex:
            while self._queue and self._free_count() > len(self._heirs):
                first = self._queue.popleft()
                if not first.must_grant:
                    first.state = NOTIFIED
                    if not first.may_pause:
                        self._heirs.add(first)
                elif self._take():
                    self._grant(first)
                else:
                    self._queue.appendleft(first)
                    break
                woken.append(first)
        wake(woken)

    def _grant(self, waiter: Waiter) -> Waiter:
        waiter.state = GRANTED
        self._taken(waiter)
        return waiter

    def _taken(self, waiter: Waiter) -> None:
        """Note who has a permit now; called with the mutex held."""

    def _begin(self, waiter: Waiter) -> bool:
        with self._mutex:
            self._queue.append(waiter)
            if waiter.state == WAITING and self._take():
                self._queue.remove(waiter)
                self._grant(waiter)
            return waiter.state == GRANTED

    def _resume(self, waiter: Waiter) -> bool:
        with self._mutex:
            if waiter.state == NOTIFIED:
                self._heirs.discard(waiter)
                if self._take():
                    self._grant(waiter)
                else:
                    waiter.state = WAITING
                    waiter.must_grant = not waiter.may_pause
                    self._queue.appendleft(waiter)
        if self._queue:
            self._serve()
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        with self._mutex:
            if waiter.state == GRANTED:
                return True
            self._heirs.discard(waiter)
            if waiter in self._queue:
                self._queue.remove(waiter)
            waiter.state = REFUSED
        if self._queue:
            self._serve()
        return False

    def _give_back(self, _waiter: Waiter) -> None:
        self._put_back()
