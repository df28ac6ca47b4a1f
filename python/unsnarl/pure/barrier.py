"""Barrier.

The last party runs the action. Until the action has ended, the full cycle is that party's: a timeout, an abort or a new
arrival meanwhile concerns the next cycle. A thread that gives up meanwhile waits for the outcome; a task or a greenlet
leaves, since the action may need its thread.

Invariant: a party that leaves is not counted in the cycle that fills.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import count, task_timeout, wait_timeout
from unsnarl.pure.descriptions import Named, public
from unsnarl.pure.parties import GRANTED, REFUSED, WAITING, Waiter, block, make_mutex, suspend, wake


def _broken() -> Exception:
    from threading import BrokenBarrierError

    return BrokenBarrierError()


class Barrier(Named):
    """A meeting point for a fixed number of threads, tasks and greenlets.

    `wait` returns the order of arrival, from 0. The party that arrives last runs the action; if the action raises, the
    barrier breaks. `ValueError` for less than one party.
    Fairness: all parties of a round are released together.
    Cancellation: a party that is out of time (seconds) breaks the barrier: every party gets
    `threading.BrokenBarrierError` until `reset`. One that is cancelled or interrupted just leaves.
    """

    __slots__ = (
        "__weakref__",
        "_acting",
        "_action",
        "_arrived",
        "_broken",
        "_mutex",
        "_parties",
        "_timeout",
        "_waiters",
    )

    _acting: int
    _action: Callable[[], object] | None
    _arrived: int
    _broken: bool
    _mutex: Any
    _parties: int
    _timeout: float | None
    _waiters: dict[Waiter, None]

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a barrier without parties, until `__init__` runs."""
        barrier = object.__new__(cls)
        barrier._mutex = make_mutex()
        barrier._waiters = {}
        barrier._parties = barrier._arrived = barrier._acting = 0
        barrier._broken = False
        barrier._action = barrier._timeout = None
        return barrier

    def __init__(self, parties: int, action: Callable[[], object] | None = None, timeout: float | None = None) -> None:
        number = count(parties)
        if number < 1:
            raise ValueError("parties must be >= 1")
        self._action, self._timeout = action, timeout
        self._turn_away(False, number)

    def _check(self) -> None:
        if self._parties == 0:
            raise RuntimeError("Barrier.__init__() was not called")

    def _turn_away(self, broken: bool, parties: int) -> None:
        """Refuse the waiters of the cycle that fills."""
        with self._mutex:
            self._parties, self._broken, self._arrived = parties, broken, 0
            woken, self._waiters = self._waiters, {}
            for waiter in woken:
                waiter.state = REFUSED
        wake(woken)

    def _begin(self, waiter: Waiter) -> bool:
        with self._mutex:
            if self._broken:
                waiter.state = REFUSED
                raise _broken()
            waiter.result = self._arrived
            self._arrived += 1
            if self._arrived < self._parties:
                self._waiters[waiter] = None
                return False
            self._arrived = 0
            departing, self._waiters = self._waiters, {}
        waiter.state = GRANTED
        self._complete(departing)
        return True

    def _complete(self, departing: dict[Waiter, None]) -> None:
        verdict = REFUSED
        self._acting += 1
        try:
            if self._action is not None:
                self._action()
            verdict = GRANTED
        finally:
            self._acting -= 1
            if verdict == REFUSED:
                self.abort()  # first: the refused parties find it broken
            for waiter in departing:
                waiter.state = verdict
            wake(departing)

    def _resume(self, waiter: Waiter) -> bool:
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        """Break the barrier, unless the waiter's cycle is full: then its outcome decides."""
        with self._mutex:
            waited = waiter in self._waiters
            if waited:
                self.abort()
        return not waited and self._decided(waiter)

    def _withdraw(self, waiter: Waiter) -> bool:
        with self._mutex:
            waited = waiter in self._waiters
            if waited:
                del self._waiters[waiter]
                self._arrived -= 1
        return not waited and self._decided(waiter)

    def _decided(self, waiter: Waiter) -> bool:
        while waiter.state == WAITING and not waiter.must_grant:
            waiter.parker.park(None)
        return waiter.state == GRANTED

    def _give_back(self, waiter: Waiter) -> None:
        """Do nothing: the others have met this party."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the other parties; return the order of arrival, from 0. The timeout (seconds) breaks the barrier."""
        self._check()
        waiter = block(self, wait_timeout(self._timeout if timeout is None else timeout))
        if waiter is None:
            raise _broken()
        return int(waiter.result)

    def green_wait(self, timeout: float | None = None) -> int:
        """Wait for the other parties; as `wait`."""
        return self.wait(timeout)

    def async_wait(self, timeout: float | None = None) -> Any:
        """Wait for the other parties in a task; as `wait`."""
        self._check()
        return self._async_wait(task_timeout(self._timeout if timeout is None else timeout))

    async def _async_wait(self, seconds: float | None) -> int:
        waiter = await suspend(self, seconds, identity.task_if_any())
        if waiter is None:
            raise _broken()
        return int(waiter.result)

    def __await__(self) -> Generator[Any, Any, int]:
        """Wait for the other parties in a task."""
        result: Generator[Any, Any, int] = self.async_wait().__await__()
        return result

    def reset(self) -> None:
        """Release the waiting parties with `BrokenBarrierError` and start again."""
        self._check()
        self._turn_away(False, self._parties)

    def abort(self) -> None:
        """Break the barrier for the parties that wait and those that arrive, until `reset`."""
        self._check()
        self._turn_away(True, self._parties)

    @property
    def parties(self) -> int:
        """Number of parties that must meet."""
        self._check()
        return self._parties

    @property
    def n_waiting(self) -> int:
        """Number of parties that wait; while the action runs, all of them."""
        self._check()
        return self._parties if self._acting else len(self._waiters)

    @property
    def waiting(self) -> int:
        """Number of parties that wait; while the action runs, all of them."""
        return self.n_waiting

    @property
    def broken(self) -> bool:
        """Whether the barrier is broken."""
        self._check()
        return self._broken

    def statistics(self) -> dict[str, int]:
        """Describe the barrier's state."""
        return {"parties": self.parties, "waiting": self.n_waiting, "broken": self.broken}

    def __repr__(self) -> str:
        """Return the class and the state."""
        return self._show("broken" if self.broken else f"waiters={self.n_waiting}/{self._parties}")


public(Barrier)
