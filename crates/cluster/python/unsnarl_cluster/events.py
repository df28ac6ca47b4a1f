"""Events between machines: set until somebody clears them, whichever process that is.

Invariant: a ``set()`` releases all that waited when it was called, even if a ``clear()`` follows at once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from unsnarl_cluster import waiting

if TYPE_CHECKING:
    from unsnarl_cluster.connection import Cluster


class Event:
    """An event between machines; it belongs to nobody, so no lease ends it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self.name = name

    def set(self) -> None:
        """Set it, and release all that wait."""
        native = self._cluster.native
        waiting.finish(native.set(self.name, True), native)

    async def async_set(self) -> None:
        """Set it, as ``set()`` does, without blocking the loop."""
        native = self._cluster.native
        await waiting.async_finish(native.set(self.name, True), native)

    def clear(self) -> None:
        """Clear it."""
        native = self._cluster.native
        waiting.finish(native.set(self.name, False), native)

    async def async_clear(self) -> None:
        """Clear it, as ``clear()`` does, without blocking the loop."""
        native = self._cluster.native
        await waiting.async_finish(native.set(self.name, False), native)

    def is_set(self) -> bool:
        """Ask the store whether it is set."""
        native = self._cluster.native
        return bool(waiting.finish(native.is_set(self.name), native))

    async def async_is_set(self) -> bool:
        """Ask the store whether it is set, without blocking the loop."""
        native = self._cluster.native
        return bool(await waiting.async_finish(native.is_set(self.name), native))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait in this thread until it is set, for up to ``timeout`` seconds; tell whether it was."""
        native = self._cluster.native
        return bool(waiting.finish(native.wait(self.name, timeout), native))

    async def async_wait(self, timeout: float | None = None) -> bool:
        """Wait in this task until it is set, for up to ``timeout`` seconds; tell whether it was."""
        native = self._cluster.native
        return bool(await waiting.async_finish(native.wait(self.name, timeout), native))

    def __await__(self) -> Generator[Any, Any, bool]:
        """Wait as ``async_wait()`` does."""
        return self.async_wait().__await__()

    def statistics(self) -> dict[str, int]:
        """Return whether it is set, as 0 or 1."""
        return {"is_set": int(self.is_set())}

    def __repr__(self) -> str:
        """Show what it is, without asking the store."""
        return f"<unsnarl.cluster.Event {self.name!r}>"
