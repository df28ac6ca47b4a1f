"""Primitives between machines, on etcd, PostgreSQL, Valkey or Redis.

    from unsnarl import cluster

    jobs = cluster.connect("etcd://host1:2379,host2:2379/jobs")
    with jobs.lock("nightly", ttl=10) as hold:
        table.write(row, fence=hold.fence)

Everything waits as a thread does, and with ``async_`` in front of its name, or ``await`` and
``async with``, as a task of asyncio or trio does. A native thread renews the leases; it needs no GIL.
"""

from unsnarl_cluster.barriers import Barrier
from unsnarl_cluster.connection import Cluster, Row, connect
from unsnarl_cluster.elections import Leader
from unsnarl_cluster.errors import (
    BrokenBarrierError,
    ClusterError,
    LeaseLost,
    StoreRefused,
    StoreUnavailable,
)
from unsnarl_cluster.events import Event
from unsnarl_cluster.holds import Hold, Lost
from unsnarl_cluster.locks import Lock, RWLock, RWLockSide, Semaphore

__all__ = [
    "Barrier",
    "BrokenBarrierError",
    "Cluster",
    "ClusterError",
    "Event",
    "Hold",
    "Leader",
    "LeaseLost",
    "Lock",
    "Lost",
    "RWLock",
    "RWLockSide",
    "Row",
    "Semaphore",
    "StoreRefused",
    "StoreUnavailable",
    "connect",
]
