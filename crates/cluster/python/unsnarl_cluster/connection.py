"""A connection to a store, and the primitives that it makes.

Invariant: nothing here holds a password; a child made by a fork gets a connection of its own, with its first call.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from typing import NamedTuple, Self

from unsnarl_cluster import _native, waiting
from unsnarl_cluster._native import NativeError
from unsnarl_cluster.barriers import Barrier
from unsnarl_cluster.elections import Leader
from unsnarl_cluster.errors import ClusterError, reraise
from unsnarl_cluster.events import Event
from unsnarl_cluster.locks import DEFAULT_TTL_S, Lock, RWLock, Semaphore


class Row(NamedTuple):
    """Somebody who holds or waits, as ``unsnarl cluster list`` shows it."""

    kind: str
    name: str
    is_shared: bool
    fence: int | None
    """None for one that waits."""
    since_ms: int
    """Milliseconds since 1970 by the store's clock (etcd: by the holder's); 0 where it is not known."""
    host: str
    pid: int
    ticket: str


def connect(url: str, *, timeout: float | None = None, password: str | None = None, **options: str) -> Cluster:
    """Connect to a store and return the connection.

    Args:
        url: ``etcd://HOST[:PORT][,…]/NAMESPACE``, ``postgresql://USER:PASSWORD@HOST/DATABASE?namespace=…``,
            ``valkey://`` or ``redis://HOST/NUMBER?namespace=…``; ``etcds``, ``valkeys`` and ``rediss`` with TLS.
        timeout: seconds without an answer after which the store counts as unavailable; 5 without it.
        password: the password, where the URL is not to have it.
        options: what may also stand behind the URL's ``?``: ``namespace``, ``user``, ``tls``, ``ca``, ``cert``, ``key``
            (paths of PEM files), ``replicas`` (Redis and Valkey).

    Raises:
        ValueError: the URL or an option makes no sense.
        StoreUnavailable: the store does not answer.
        StoreRefused: the store does not let us in, is too old, or is behind a pooler that it cannot be used through.
    """
    if timeout is not None:
        options["timeout"] = str(timeout)
    if password is not None:
        options["password"] = password
    cluster = Cluster(url, list(options.items()))
    native = cluster.native
    try:
        waiting.finish(native.connect(), native)
    except BaseException:
        cluster.close()
        raise
    return cluster


class Cluster:
    """A connection to a store; safe to share between threads and tasks. Made by ``connect()``."""

    def __init__(self, url: str, options: list[tuple[str, str]]) -> None:
        self._place = _place_of(url)
        # In a closure, where no repr of this object's attributes shows a password.
        self._make: Callable[[], _native.Client] = lambda: _native.Client(url, options)
        self._native: _native.Client | None = self._start()
        self._process = os.getpid()
        _open.add(self)

    def _start(self) -> _native.Client:
        try:
            return self._make()
        except NativeError as error:
            reraise(error)

    @property
    def native(self) -> _native.Client:
        """The native side, which belongs to this process."""
        if self._native is None:
            raise ClusterError("this connection is closed")
        if self._process != os.getpid():
            self._native, self._process = self._start(), os.getpid()
        return self._native

    def lock(
        self, name: str, ttl: float = DEFAULT_TTL_S, *, progress: float | None = None, timeout: float | None = None
    ) -> Lock:
        """Return the lock of that name.

        Args:
            name: 1 to 255 bytes, of any characters.
            ttl: seconds after which another may have it if this process does not renew it.
            progress: seconds without ``hold.progress()`` after which the hold ends though the process lives.
            timeout: seconds that ``with`` waits, before it raises ``TimeoutError``; without limit if None.
        """
        return Lock(self, name, ttl, progress=progress, timeout=timeout)

    def rwlock(
        self, name: str, ttl: float = DEFAULT_TTL_S, *, progress: float | None = None, timeout: float | None = None
    ) -> RWLock:
        """Return the read/write lock of that name, with a ``reader`` and a ``writer`` side."""
        return RWLock(self, name, ttl, progress=progress, timeout=timeout)

    def semaphore(
        self,
        name: str,
        n: int,
        ttl: float = DEFAULT_TTL_S,
        *,
        progress: float | None = None,
        timeout: float | None = None,
    ) -> Semaphore:
        """Return the semaphore of that name, with ``n`` permits; all its users pass the same ``n``."""
        return Semaphore(self, name, n, ttl, progress=progress, timeout=timeout)

    def leader(
        self, name: str, ttl: float = DEFAULT_TTL_S, *, progress: float | None = None, timeout: float | None = None
    ) -> Leader:
        """Return the election of that name."""
        return Leader(self, name, ttl, progress=progress, timeout=timeout)

    def barrier(self, name: str, n: int, ttl: float = DEFAULT_TTL_S, *, timeout: float | None = None) -> Barrier:
        """Return the barrier of that name, for ``n`` parties; a party that dies is noticed within twice the ttl."""
        return Barrier(self, name, n, ttl, timeout=timeout)

    def event(self, name: str) -> Event:
        """Return the event of that name."""
        return Event(self, name)

    def list(self) -> list[Row]:
        """Ask the store who holds what in this namespace, and who waits for it."""
        native = self.native
        rows = waiting.finish(native.list(), native)
        return [Row(*row) for row in rows]

    def break_(self, kind: str, name: str) -> int:
        """Take a lock, rwlock, semaphore or leadership away from whoever has it; return how many had it.

        The holder is told, but may go on for a while: the fence is what keeps it from doing harm.
        """
        native = self.native
        return int(waiting.finish(native.remove(kind, name), native))

    def statistics(self) -> dict[str, int]:
        """Return what this connection has done, by the names of docs/reference/cluster.md."""
        return self.native.statistics()

    def close(self) -> None:
        """Give everything back and end the connection; waits for the store for up to its ``timeout``."""
        native, self._native = self._native, None
        if native is not None and not native.is_forked:
            waiting.finish(native.close(), native)

    def __enter__(self) -> Self:
        """Close it when the block ends."""
        return self

    def __exit__(self, *_args: object) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Show where it goes, without the part of the URL that may hold a password."""
        return f"<unsnarl.cluster.Cluster {self._place}>"


def _place_of(url: str) -> str:
    scheme, _, rest = url.partition("://")
    place = rest.partition("?")[0].rpartition("@")[2]
    return f"{scheme}://{place}"


_FAREWELL_S = 2.0
"""Seconds for which an exit waits for stores at most; leases that were not given back by then run out."""

_process = os.getpid()
_open: weakref.WeakSet[Cluster] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Give back what the program still holds, so that others need not wait for its leases to end."""
    for cluster in list(_open):
        try:
            cluster.close()
        except ClusterError:
            continue
    # Of connections that were dropped with something held, the native thread gives it back.
    if os.getpid() == _process:
        _native.wait_for_the_end(_FAREWELL_S)
