"""The state of one hold: its fence, and the means to find out that the lease is lost.

Invariant: ``check()`` compares the clock with the lease's deadline, so it is right at any moment, after a pause of the
process too; it asks nobody and takes no lock.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Self

from unsnarl_cluster import _native, waiting
from unsnarl_cluster.errors import LeaseLost


class Lost:
    """An event that is set when the hold is lost, for threads and tasks."""

    __slots__ = ("_client", "_hold")

    def __init__(self, client: _native.Client, hold: _native.Hold) -> None:
        self._client = client
        self._hold = hold

    def is_set(self) -> bool:
        """Tell whether the hold is lost."""
        return self._hold.loss() is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait in this thread until the hold is lost, for up to ``timeout`` seconds; tell whether it is.

        Returns False as soon as the hold is released: it can no longer be lost then.
        """
        return bool(waiting.finish(self._client.watch(self._hold, timeout), self._client))

    async def async_wait(self, timeout: float | None = None) -> bool:
        """Wait in this task, as ``wait()`` does in a thread."""
        return bool(await waiting.async_finish(self._client.watch(self._hold, timeout), self._client))

    def __await__(self) -> Generator[Any, Any, bool]:
        """Wait as ``async_wait()`` does."""
        return self.async_wait().__await__()

    def __repr__(self) -> str:
        """Show whether it is set."""
        return f"<unsnarl.cluster.Lost: {'set' if self.is_set() else 'not set'}>"


class Hold:
    """A lock, a permit, a side of a read/write lock or a leadership that this process has.

    Attributes:
        lost: an event that is set when it is lost.
    """

    __slots__ = ("_client", "_native", "_where", "lost")

    def __init__(self, client: _native.Client, hold: _native.Hold, where: str) -> None:
        self._client = client
        self._native = hold
        self._where = where
        self.lost = Lost(client, hold)

    @property
    def fence(self) -> int:
        """A number that is higher than that of every earlier holder: the resource refuses a lower one."""
        return self._native.fence

    @property
    def ticket(self) -> str:
        """The name of this hold in the store, as ``unsnarl cluster list`` shows it."""
        return self._native.ticket

    @property
    def remaining(self) -> float:
        """For how many seconds it is good without another renewal; 0 once it is lost or released."""
        return self._native.remaining()

    @property
    def is_released(self) -> bool:
        """Whether it was given back."""
        return self._native.is_released

    def check(self) -> None:
        """Return if the hold can be relied on at this moment.

        Raises:
            LeaseLost: it cannot; or it was released.
        """
        loss = self._native.loss()
        if loss is not None:
            raise LeaseLost(f"{self._where} is lost: {loss}")
        if self._native.is_released:
            raise LeaseLost(f"{self._where} was released")

    def progress(self) -> None:
        """Say that the work gets on, where ``progress=`` was given.

        Raises:
            LeaseLost: too late.
        """
        self._native.progress()
        self.check()

    def release(self) -> None:
        """Give it back.

        Raises:
            LeaseLost: it was lost before, or released.
            StoreUnavailable: the store does not answer; the native thread goes on trying until the lease ends.
        """
        waiting.finish(self._begin_release(), self._client)

    async def async_release(self) -> None:
        """Give it back, as ``release()`` does, without blocking the loop."""
        await waiting.async_finish(self._begin_release(), self._client)

    def release_soon(self) -> None:
        """Give it back without waiting for the store: the native thread does it, for as long as the lease lasts.

        Raises:
            LeaseLost: it was lost before, or released.
        """
        self._begin_release()

    def _begin_release(self) -> _native.Operation:
        reason = self._native.release()
        if reason is not None:
            raise LeaseLost(f"{self._where} cannot be released: {reason}")
        return self._client.release(self._native)

    def __enter__(self) -> Self:
        """Release it when the block ends."""
        return self

    def __exit__(self, kind: object, *_args: object) -> None:
        """Release it; a loss is raised unless another exception is under way."""
        try:
            self.release()
        except LeaseLost:
            if kind is None:
                raise

    async def __aenter__(self) -> Self:
        """Release it when the block ends."""
        return self

    async def __aexit__(self, kind: object, *_args: object) -> None:
        """Release it; a loss is raised unless another exception is under way, which is not held up by the store."""
        try:
            if kind is None:
                await self.async_release()
            else:
                self.release_soon()
        except LeaseLost:
            if kind is None:
                raise

    def __repr__(self) -> str:
        """Show what is held, and how it stands."""
        state = self._native.loss() or ("released" if self.is_released else f"fence {self.fence}")
        return f"<unsnarl.cluster.Hold of {self._where}: {state}>"
