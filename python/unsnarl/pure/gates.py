"""Event, CountdownEvent and Latch: gates that every waiting party passes when they open.

Invariant: a party that waited when the gate opened passes, even if the gate is closed again before that party runs.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from unsnarl.pure import identity
from unsnarl.pure.arguments import positive, task_timeout, wait_timeout
from unsnarl.pure.descriptions import Named, deprecated, public
from unsnarl.pure.parties import GRANTED, REFUSED, Waiter, block, make_mutex, suspend, wake


class Gate(Named):
    """A flag, and the parties that wait until it is set."""

    __slots__ = ("_is_open", "_mutex", "_waiters")

    def _start(self, is_open: bool) -> None:
        self._mutex = make_mutex()
        self._waiters: dict[Waiter, None] = {}
        self._is_open = is_open

    def _open(self) -> dict[Waiter, None]:
        """Open it, with the mutex held; return the parties to wake."""
        self._is_open = True
        woken, self._waiters = self._waiters, {}
        for waiter in woken:
            waiter.state = GRANTED
        return woken

    def _begin(self, waiter: Waiter) -> bool:
        with self._mutex:
            self._waiters[waiter] = None
            if self._is_open:
                self._waiters.pop(waiter, None)
                waiter.state = GRANTED
            return waiter.state == GRANTED

    def _resume(self, waiter: Waiter) -> bool:
        return waiter.state == GRANTED

    def _cancel(self, waiter: Waiter) -> bool:
        with self._mutex:
            self._waiters.pop(waiter, None)
            if waiter.state != GRANTED:
                waiter.state = REFUSED
            return waiter.state == GRANTED

    def _give_back(self, waiter: Waiter) -> None:
        """Do nothing: a gate takes nothing from anybody."""

    def is_set(self) -> bool:
        """Return whether a party may pass."""
        return self._is_open

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if the timeout (seconds) passed first."""
        if self._is_open:
            return True
        seconds = wait_timeout(timeout)
        return seconds != 0 and block(self, seconds) is not None

    def green_wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if the timeout (seconds) passed first."""
        return self.wait(timeout)

    def async_wait(self, timeout: float | None = None) -> Any:
        """Wait in a task until it is set; False if the timeout (seconds) passed first."""
        return self._async_wait(task_timeout(timeout))

    async def _async_wait(self, seconds: float | None) -> bool:
        if self._is_open:
            return True
        return seconds != 0 and await suspend(self, seconds, identity.task_if_any()) is not None

    def __await__(self) -> Generator[Any, Any, bool]:
        """Wait in a task until it is set."""
        result: Generator[Any, Any, bool] = self._async_wait(None).__await__()
        return result

    @property
    def waiting(self) -> int:
        """Number of parties that wait."""
        return len(self._waiters)


class Event(Gate):
    """A flag that threads, tasks and greenlets can wait for.

    Fairness: `set` releases every party that waits at that moment, even if `clear` follows immediately.
    Cancellation: nothing is taken, so nothing can be lost. Timeouts are in seconds.
    """

    __slots__ = ("__weakref__", "_condition")

    _condition: Any

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make an event that is not set."""
        event = object.__new__(cls)
        event._start(False)
        event._condition = None
        return event

    def __init__(self) -> None:
        self._is_open = False

    def set(self) -> None:
        """Set the event and release every party that waits."""
        if not self._is_open:
            with self._mutex:
                woken = self._open()
            wake(woken)

    def clear(self) -> None:
        """Unset the event."""
        with self._mutex:
            self._is_open = False

    def isSet(self) -> bool:  # noqa: N802 - the standard library's name
        """Return whether it is set, with a warning."""
        deprecated("isSet() is deprecated, use is_set() instead")
        return self._is_open

    def __bool__(self) -> bool:
        """Return True."""
        return True

    def statistics(self) -> dict[str, int]:
        """Describe the event's state."""
        return {"set": self._is_open, "waiting": self.waiting}

    @property
    def _cond(self) -> Any:
        if self._condition is None:
            from unsnarl.pure.condition import Condition
            from unsnarl.pure.locks import Lock

            self._condition = Condition(Lock())
        return self._condition

    def _at_fork_reinit(self) -> None:
        self._start(self._is_open)

    def __repr__(self) -> str:
        """Return the class and the state."""
        return self._show("set" if self._is_open else "unset")


class CountdownEvent(Gate):
    """An event that is set while its count is zero; up() raises the count, down() lowers it.

    `ValueError` for a count below zero.
    Fairness and cancellation: as `Event`. Timeouts are in seconds.
    """

    __slots__ = ("__weakref__", "_count")

    _count: int

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make an event whose count is zero, until `__init__` runs."""
        event = object.__new__(cls)
        event._start(True)
        event._count = 0
        return event

    def __init__(self, value: int = 0) -> None:
        if value < 0:
            raise ValueError("initial value must be >= 0")
        self._continue_at(value)

    def _continue_at(self, value: int) -> None:
        woken: dict[Waiter, None] = {}
        with self._mutex:
            self._count = value
            if value > 0:
                self._is_open = False
            else:
                woken = self._open()
        wake(woken)

    def up(self, count: int = 1) -> None:
        """Raise the count: a party that waits from now on waits until it is zero again."""
        number = positive(count)
        with self._mutex:
            self._count += number
            self._is_open = False

    def down(self, count: int = 1) -> None:
        """Lower the count; at zero, every waiting party is released. ValueError below zero."""
        self._lower(positive(count))

    def _lower(self, number: int) -> None:
        woken: dict[Waiter, None] = {}
        with self._mutex:
            if number > self._count:
                raise ValueError("down() called too many times: the count would be negative")
            self._count -= number
            if self._count == 0:
                woken = self._open()
        wake(woken)

    def clear(self) -> None:
        """Set the count to zero."""
        self._continue_at(0)

    @property
    def value(self) -> int:
        """The count."""
        return self._count

    def statistics(self) -> dict[str, int]:
        """Describe the state."""
        return {"value": self._count, "waiting": self.waiting}

    def __repr__(self) -> str:
        """Return the class and the count."""
        return self._show(f"value={self._count}")


class Latch(CountdownEvent):
    """A gate that opens permanently after enough calls of count_down().

    The count does not go up again: `up` raises `TypeError`; a count below zero is a `ValueError`. Fairness and
    cancellation: as `Event`. Timeouts are in seconds.
    """

    __slots__ = ()

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a latch that waits for one call, until `__init__` runs."""
        latch = super().__new__(cls)
        latch._count, latch._is_open = 1, False
        return latch

    def __init__(self, count: int = 1) -> None:
        self._continue_at(positive(count))

    def count_down(self, count: int = 1) -> None:
        """Lower the count without waiting; ValueError below zero."""
        self._lower(positive(count))

    def arrive_and_wait(self, timeout: float | None = None) -> bool:
        """Lower the count and wait for the other parties; False if the timeout (seconds) passed first."""
        self._lower(1)
        return self.wait(timeout)

    def async_arrive_and_wait(self, timeout: float | None = None) -> Any:
        """Lower the count when this is awaited, and wait; False if the timeout (seconds) passed first."""
        return self._arrive_and_wait(task_timeout(timeout))

    async def _arrive_and_wait(self, seconds: float | None) -> bool:
        self._lower(1)
        return await self._async_wait(seconds)

    def up(self, count: int = 1) -> None:
        """Raise TypeError: a latch does not go up again."""
        raise TypeError(f"a Latch only counts down, not up by {count}; use CountdownEvent")


public(Event, CountdownEvent, Latch)
