"""Elections: one leader at a time, which knows when it no longer is.

Invariant: a term has a hold, and the next term of one iterator begins after that hold was released or lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

from unsnarl_cluster.holds import Hold
from unsnarl_cluster.locks import Acquirable

if TYPE_CHECKING:
    from unsnarl_cluster.connection import Row


class Leader(Acquirable):
    """An election: a lock whose holds are terms of office.

    ``with leader as hold:`` leads once. ``run(callback)`` leads until a term ends without a loss. ``for hold in
    leader`` and ``async for`` lead again and again: asking for the next term ends the one before. A loop that is left
    by ``break`` keeps its last hold, until that is released.
    """

    _kind = "leader"

    def run(self, callback: Callable[[Hold], object]) -> None:
        """Wait to be elected and call ``callback`` with the hold, again and again until a term ends without a loss.

        The callback returns when ``hold.lost`` is set, or when it has had enough: the election is left then.
        """
        if iscoroutinefunction(callback):
            raise TypeError("run() calls a plain function; async_run() awaits a coroutine's")
        for hold in self:
            try:
                callback(hold)
            except BaseException:
                _end(hold)
                raise
            if not hold.lost.is_set():
                _end(hold)
                return

    async def async_run(self, callback: Callable[[Hold], Awaitable[object]]) -> None:
        """Wait to be elected and await ``callback``, as ``run()`` does in a thread."""
        async for hold in self:
            try:
                await callback(hold)
            except BaseException:
                _end(hold, is_waiting=False)
                raise
            if not hold.lost.is_set():
                await _async_end(hold)
                return

    def __iter__(self) -> Iterator[Hold]:
        """Return an iterator over terms, for a thread."""
        return _Terms(self)

    def __aiter__(self) -> AsyncIterator[Hold]:
        """Return an iterator over terms, for a task."""
        return _Terms(self)

    def current(self) -> Row | None:
        """Ask the store who leads; None if nobody does."""
        return next((row for row in self._rows() if row.fence is not None), None)


class _Terms:
    """An iterator over terms, without an end."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._hold: Hold | None = None

    def __iter__(self) -> _Terms:
        return self

    def __aiter__(self) -> _Terms:
        return self

    def __next__(self) -> Hold:
        if self._hold is not None:
            _end(self._hold)
        return self._begun(self._leader.acquire())

    async def __anext__(self) -> Hold:
        if self._hold is not None:
            await _async_end(self._hold)
        return self._begun(await self._leader.async_acquire())

    def _begun(self, hold: Hold | None) -> Hold:
        assert hold is not None, "without a timeout it waits until it is elected"
        self._hold = hold
        return hold


def _is_running(hold: Hold) -> bool:
    return not hold.lost.is_set() and not hold.is_released


def _end(hold: Hold, *, is_waiting: bool = True) -> None:
    if _is_running(hold):
        hold.release() if is_waiting else hold.release_soon()


async def _async_end(hold: Hold) -> None:
    if _is_running(hold):
        await hold.async_release()
