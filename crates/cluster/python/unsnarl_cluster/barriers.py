"""Barriers between machines: cyclic, and broken for all when one party leaves.

Invariant: a party passes if and only if its cycle had all its parties.
"""

from __future__ import annotations

from collections.abc import Generator
from operator import index
from typing import TYPE_CHECKING, Any

from unsnarl_cluster import waiting
from unsnarl_cluster._native import check_ttl

if TYPE_CHECKING:
    from unsnarl_cluster.connection import Cluster


class Barrier:
    """A barrier between machines.

    A party that times out, is cancelled or dies breaks it for all, until ``reset()``.

    Attributes:
        parties: how many it takes to pass.
    """

    def __init__(self, cluster: Cluster, name: str, n: int, ttl: float, *, timeout: float | None = None) -> None:
        check_ttl(ttl)
        self.parties = index(n)
        if self.parties < 1:
            raise ValueError(f"a barrier has 1 party or more, not {n}")
        self._cluster = cluster
        self.name = name
        self.ttl = ttl
        self._timeout = timeout

    def wait(self, timeout: float | None = None) -> int:
        """Wait until all parties have arrived; return the place, 0 for the first to arrive.

        Raises:
            BrokenBarrierError: a party left, this one by its ``timeout`` for instance.
        """
        return int(waiting.finish(self._arrive(timeout), self._cluster.native))

    async def async_wait(self, timeout: float | None = None) -> int:
        """Wait in a task, as ``wait()`` does in a thread."""
        return int(await waiting.async_finish(self._arrive(timeout), self._cluster.native))

    def __await__(self) -> Generator[Any, Any, int]:
        """Wait as ``async_wait()`` does."""
        return self.async_wait().__await__()

    def _arrive(self, timeout: float | None) -> Any:
        limit = self._timeout if timeout is None else timeout
        return self._cluster.native.arrive(self.name, self.parties, self.ttl, limit)

    def abort(self) -> None:
        """Break it, until ``reset()``."""
        native = self._cluster.native
        waiting.finish(native.break_barrier(self.name, False), native)

    def reset(self) -> None:
        """Make it whole and empty; those that wait at it get ``BrokenBarrierError``."""
        native = self._cluster.native
        waiting.finish(native.break_barrier(self.name, True), native)

    @property
    def n_waiting(self) -> int:
        """How many have arrived, in the whole cluster."""
        native = self._cluster.native
        return int(waiting.finish(native.waiting(self.name), native))

    def statistics(self) -> dict[str, int]:
        """Return how many have arrived, and how many it takes."""
        return {"waiting": self.n_waiting, "parties": self.parties}

    def __repr__(self) -> str:
        """Show what it is, without asking the store."""
        return f"<unsnarl.cluster.Barrier {self.name!r} parties={self.parties}>"
