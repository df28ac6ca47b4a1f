"""How long each store leaves a plain client without an answer while the loads run.

A lease can outlive no longer silence of its store than its ttl. So each store is asked, a few times in the ttl, for
what costs it next to nothing and waits for no disk, by a client that has nothing of unsnarl, in a process without a
load.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

from bench.cluster.peers import port_of, url_of

PAUSE_S = 0.5


def redis() -> Callable[[], object]:
    """Return a call that asks Redis."""
    library: Any = import_module("redis")
    ping: Callable[[], object] = library.Redis(port=port_of("redis")).ping
    return ping


def postgres() -> Callable[[], object]:
    """Return a call that asks PostgreSQL."""
    library: Any = import_module("psycopg")
    connection = library.connect(url_of("postgres"), autocommit=True)
    return lambda: connection.execute("SELECT 1").fetchone()


def etcd() -> Callable[[], object]:
    """Return a call that asks etcd's member, which answers alone."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of("etcd"))

    def ask() -> object:
        connection.request("GET", "/version")
        return connection.getresponse().read()

    return ask


STORES: dict[str, Callable[[], Callable[[], object]]] = {"redis": redis, "postgres": postgres, "etcd": etcd}


class Answers:
    """Asks all stores until it is left; ``longest_ms`` has the longest answer of each.

    Leaving it raises the first error of a store, since a store that refuses is none that was quick.
    """

    def __init__(self) -> None:
        self.longest_ms = dict.fromkeys(STORES, 0.0)
        self.errors: list[Exception] = []
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(store,)) for store in STORES]

    def __enter__(self) -> Self:
        """Begin to ask."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ask no more."""
        self._end.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _ask(self, store: str) -> None:
        try:
            ask = STORES[store]()
            while not self._end.wait(PAUSE_S):
                begin = time.monotonic()
                ask()
                self.longest_ms[store] = max(self.longest_ms[store], (time.monotonic() - begin) * 1e3)
        except Exception as error:  # noqa: BLE001 -- raised by the thread that measures
            self.errors.append(error)
