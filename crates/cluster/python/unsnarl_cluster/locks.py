"""Locks, read/write locks and semaphores between machines.

Fairness: the store grants in the order of arrival, whatever machine a waiter is on. Cancellation and timeouts take
the waiter out of the queue. Every object serves threads and tasks, any number of them at once.

Invariant: a block that was entered releases its own hold, whichever thread or task entered another one meanwhile.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from unsnarl_cluster import waiting
from unsnarl_cluster._native import NativeError, Operation, check_ttl
from unsnarl_cluster.errors import LeaseLost, is_timeout, reraise
from unsnarl_cluster.holds import Hold

if TYPE_CHECKING:
    from unsnarl_cluster.connection import Cluster

DEFAULT_TTL_S = 10.0
"""Seconds: three renewals in it, each of which may take seconds, and a crash holds others up no longer."""


MOST_PERMITS = 2**31 - 1
"""Of a semaphore: what an integer of PostgreSQL holds."""


class Acquirable:
    """Base of the primitives that are acquired for a time.

    Attributes:
        name: its name in the namespace; kinds have names of their own.
        ttl: seconds for which a hold outlives its process.
    """

    _kind = "lock"
    _is_shared = False

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        ttl: float,
        *,
        limit: int = 1,
        progress: float | None = None,
        timeout: float | None = None,
    ) -> None:
        check_ttl(ttl)
        if progress is not None and not progress > 0:  # nor a NaN
            raise ValueError(f"progress is a number of seconds above 0, not {progress}")
        self._cluster = cluster
        self.name = name
        self.ttl = ttl
        self._limit = limit
        self._progress = progress
        self._timeout = timeout
        self._holds: dict[object, list[Hold]] = {}
        self._counts = dict.fromkeys(("acquired", "timed_out"), 0)

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> Hold | None:
        """Acquire it and return the hold; None if the time is up, or at once if not ``blocking``.

        Raises:
            StoreUnavailable: the store has not answered for the connection's ``timeout``.
        """
        operation = self._begin(blocking=blocking, timeout=timeout)
        try:
            operation.wait()
        except BaseException:
            waiting.abandon(operation, self._cluster.native)
            raise
        return self._outcome(operation)

    async def async_acquire(self, timeout: float | None = None, blocking: bool = True) -> Hold | None:
        """Acquire it in a task, as ``acquire()`` does in a thread; cancellation leaves nothing behind."""
        operation = self._begin(blocking=blocking, timeout=timeout)
        await waiting.async_finish_quietly(operation, self._cluster.native)
        return self._outcome(operation)

    def _begin(self, *, blocking: bool, timeout: float | None) -> Operation:
        return self._cluster.native.acquire(
            self._kind,
            self.name,
            self.ttl,
            is_shared=self._is_shared,
            limit=self._limit,
            progress=self._progress,
            is_waiting=blocking,
            timeout=timeout,
        )

    def _outcome(self, operation: Operation) -> Hold | None:
        try:
            native = operation.result()
        except NativeError as error:
            if is_timeout(error):
                self._counts["timed_out"] += 1
                return None
            reraise(error)
        self._counts["acquired"] += 1
        return Hold(self._cluster.native, native, f"the {self._kind} {self.name!r}")

    def __enter__(self) -> Hold:
        """Acquire it for the block.

        Raises:
            TimeoutError: a ``timeout`` was given when this object was made, and is up.
        """
        return self._entered(self.acquire(timeout=self._timeout))

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        """Release what the block has entered with; a loss is raised unless another exception is under way."""
        self._left().__exit__(kind, value, traceback)

    async def __aenter__(self) -> Hold:
        """Acquire it for the block, as ``__enter__`` does."""
        return self._entered(await self.async_acquire(timeout=self._timeout))

    async def __aexit__(self, kind: object, value: object, traceback: object) -> None:
        """Release what the block has entered with; a loss is raised unless another exception is under way."""
        await self._left().__aexit__(kind, value, traceback)

    def _entered(self, hold: Hold | None) -> Hold:
        if hold is None:
            raise TimeoutError(f"the {self._kind} {self.name!r} was not free within {self._timeout} s")
        self._holds.setdefault(waiting.caller(), []).append(hold)
        return hold

    def _left(self) -> Hold:
        caller = waiting.caller()
        holds = self._holds.get(caller)
        if not holds:
            raise LeaseLost(f"the {self._kind} {self.name!r} was not entered by this thread or task")
        hold = holds.pop()
        if not holds:
            del self._holds[caller]
        return hold

    def locked(self) -> bool:
        """Tell whether nobody could acquire it at this moment, by asking the store."""
        return sum(row.fence is not None for row in self._rows()) >= self._limit

    def statistics(self) -> dict[str, int]:
        """Return who has it and who waits, in the whole cluster, and what this object has done."""
        rows = self._rows()
        holders = sum(row.fence is not None for row in rows)
        return {"holders": holders, "waiting": len(rows) - holders, **self._counts}

    def _rows(self) -> list[Row]:
        rows = self._cluster.list()
        return [row for row in rows if row.kind == self._kind and row.name == self.name]

    def __repr__(self) -> str:
        """Show what it is, without asking the store."""
        return f"<unsnarl.cluster.{type(self).__name__} {self.name!r} ttl={self.ttl}>"


class Lock(Acquirable):
    """A mutual exclusion lock between machines; not re-entrant."""


class Semaphore(Acquirable):
    """A semaphore between machines: up to ``n`` holds at once, each of them a lease of its own."""

    _kind = "semaphore"

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        n: int,
        ttl: float,
        *,
        progress: float | None = None,
        timeout: float | None = None,
    ) -> None:
        self.n = index(n)
        if not 1 <= self.n <= MOST_PERMITS:
            raise ValueError(f"a semaphore has 1 to {MOST_PERMITS} permits, not {n}")
        super().__init__(cluster, name, ttl, limit=self.n, progress=progress, timeout=timeout)


class RWLockSide(Acquirable):
    """One side of a read/write lock."""

    _kind = "rwlock"

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        ttl: float,
        *,
        is_shared: bool,
        progress: float | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(cluster, name, ttl, progress=progress, timeout=timeout)
        self._is_shared = is_shared

    def locked(self) -> bool:
        """Tell whether this side could not be acquired at this moment, whoever waits."""
        held = [row for row in self._rows() if row.fence is not None]
        return any(not row.is_shared for row in held) if self._is_shared else bool(held)


class RWLock:
    """A read/write lock between machines: many readers or one writer, in the order of arrival.

    Attributes:
        reader: the side that many may hold together.
        writer: the side that one holds alone.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        ttl: float,
        *,
        progress: float | None = None,
        timeout: float | None = None,
    ) -> None:
        self.name = name
        self.reader = RWLockSide(cluster, name, ttl, is_shared=True, progress=progress, timeout=timeout)
        self.writer = RWLockSide(cluster, name, ttl, is_shared=False, progress=progress, timeout=timeout)

    def locked(self) -> bool:
        """Tell whether anybody holds either side."""
        return self.writer.locked()

    def statistics(self) -> dict[str, int]:
        """Return who has it and who waits, in the whole cluster, and what this object has done."""
        reader, writer = self.reader.statistics(), self.writer.statistics()
        return {**reader, "acquired": reader["acquired"] + writer["acquired"],
                "timed_out": reader["timed_out"] + writer["timed_out"]}  # fmt: skip

    def __repr__(self) -> str:
        """Show what it is, without asking the store."""
        return f"<unsnarl.cluster.RWLock {self.name!r} ttl={self.reader.ttl}>"


if TYPE_CHECKING:
    from unsnarl_cluster.connection import Row
