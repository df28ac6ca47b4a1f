"""Locks of other libraries, all with the same three methods, and bare transactions of each store.

Each is used as its documentation says. Those that leave renewing to the program are renewed by a thread, three times
in the ttl, as a careful program would. Their types are not known where the lints run: they are looked up by name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit


def variable_of(store: str) -> str:
    """Return the variable in which scripts/cluster-servers says where a store is."""
    return f"UNSNARL_CLUSTER_{store.upper()}"


def missing(stores: Iterable[str]) -> list[str]:
    """Return the variables of the stores that were not started."""
    return [name for name in map(variable_of, stores) if not os.environ.get(name)]


def versions() -> dict[str, str]:
    """Return the version of each store's server, as its command says it; without those that are not on PATH."""
    found: dict[str, str] = {}
    # A Valkey is taken where there is one, as by scripts/cluster-servers.
    third = "valkey-server" if shutil.which("valkey-server") else "redis-server"
    for command in ("etcd", "postgres", third):
        if path := shutil.which(command):
            said = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
            if number := re.search(r"\d+(\.\d+)+", said):
                found[command] = number.group()
    return found


def url_of(store: str) -> str:
    """Return where scripts/cluster-servers has started a store."""
    return os.environ[variable_of(store)]


def port_of(store: str) -> int:
    """Return the port of a store."""
    return urlsplit(url_of(store)).port or 0


class Ours:
    """unsnarl.cluster's lock."""

    def __init__(self, store: str, ttl: float) -> None:
        from unsnarl import cluster

        separator = "/" if store == "etcd" else "?namespace="
        self.jobs = cluster.connect(f"{url_of(store)}{separator}{uuid.uuid4().hex}")
        self._lock = self.jobs.lock("a", ttl=ttl)
        self._hold: Any = None

    def acquire(self) -> None:
        """Acquire it."""
        self._hold = self._lock.acquire()

    def release(self) -> None:
        """Release it."""
        self._hold.release()

    def is_held(self) -> bool:
        """Tell whether it is still ours."""
        return not self._hold.lost.is_set()

    def close(self) -> None:
        """End the connection."""
        self.jobs.close()


class Renewed:
    """A peer whose lock the program renews: a thread calls `renew` three times in the ttl."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def renew(self) -> None:
        """Renew the lock once."""
        raise NotImplementedError

    def keep_renewing(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._end.wait(self._ttl / 3):
            try:
                self.renew()
            except Exception:  # noqa: BLE001 -- whatever it raises, the lock is lost
                return

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()


class RedisPy(Renewed):
    """redis-py's own Lock."""

    def __init__(self, ttl: float) -> None:
        super().__init__(ttl)
        redis: Any = import_module("redis")

        client = redis.Redis(port=port_of("redis"))
        self._lock: Any = client.lock(uuid.uuid4().hex, timeout=ttl, thread_local=False)

    def acquire(self) -> None:
        """Acquire it."""
        self._lock.acquire()

    def release(self) -> None:
        """Release it."""
        self._lock.release()

    def renew(self) -> None:
        """Begin its time to live again."""
        self._lock.reacquire()

    def is_held(self) -> bool:
        """Tell whether the store still has it as ours."""
        return bool(self._lock.owned())


class PythonRedisLock:
    """python-redis-lock, which renews from a thread of its own."""

    def __init__(self, ttl: float, *, is_renewed: bool) -> None:
        redis: Any = import_module("redis")
        redis_lock: Any = import_module("redis_lock")

        self._client = redis.Redis(port=port_of("redis"))
        self._lock: Any = redis_lock.Lock(
            self._client, uuid.uuid4().hex, expire=max(1, int(ttl)), auto_renewal=is_renewed
        )

    def acquire(self) -> None:
        """Acquire it."""
        self._lock.acquire()

    def release(self) -> None:
        """Release it."""
        self._lock.release()

    def keep_renewing(self) -> None:
        """It does."""

    def is_held(self) -> bool:
        """Tell whether the store still has it as ours."""
        return bool(self._lock.get_owner_id() == self._lock.id)

    def close(self) -> None:
        """End the connection."""
        self._client.close()


class Etcd3gw(Renewed):
    """etcd3gw's Lock, over etcd's JSON gateway."""

    def __init__(self, ttl: float) -> None:
        super().__init__(ttl)
        etcd3gw: Any = import_module("etcd3gw")

        client = etcd3gw.client(port=port_of("etcd"), api_path="/v3/")
        self._lock: Any = client.lock(uuid.uuid4().hex, ttl=max(1, int(ttl)))

    def acquire(self) -> None:
        """Acquire it."""
        assert self._lock.acquire()

    def release(self) -> None:
        """Release it."""
        self._lock.release()

    def renew(self) -> None:
        """Begin its time to live again."""
        self._lock.refresh()

    def is_held(self) -> bool:
        """Tell whether the store still has it as ours."""
        return bool(self._lock.is_acquired())


def bare_redis() -> Callable[[], object]:
    """Return two transactions of Redis, as an acquire and a release are two."""
    redis: Any = import_module("redis")

    pipeline = redis.Redis(port=port_of("redis")).pipeline(transaction=True)

    def twice() -> None:
        for _ in range(2):
            pipeline.set("bare", "1").get("bare").execute()

    return twice


def bare_postgres() -> Callable[[], object]:
    """Return two transactions of PostgreSQL: a row written and committed, each time."""
    psycopg: Any = import_module("psycopg")

    connection = psycopg.connect(url_of("postgres"), autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id int PRIMARY KEY, n bigint)")
    connection.execute("INSERT INTO bare VALUES (1, 0) ON CONFLICT DO NOTHING")

    def twice() -> None:
        for _ in range(2):
            connection.execute("UPDATE bare SET n = n + 1 WHERE id = 1")

    return twice


def bare_etcd() -> Callable[[], object]:
    """Return two puts of etcd, over the JSON gateway: there is no kept Python client that speaks gRPC."""
    etcd3gw: Any = import_module("etcd3gw")

    client = etcd3gw.client(port=port_of("etcd"), api_path="/v3/")

    def twice() -> None:
        for _ in range(2):
            client.put("bare", "1")

    return twice


BARE: dict[str, Callable[[], Callable[[], object]]] = {
    "etcd": bare_etcd,
    "postgres": bare_postgres,
    "redis": bare_redis,
}
