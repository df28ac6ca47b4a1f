"""Connections to real stores: every test runs on each store that there is, in a namespace of its own.

``scripts/cluster-servers`` says where the stores are. Without it, and where a server cannot be had, the tests are
skipped, with the reason.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster

STORES = ("etcd", "postgres", "redis")


def url_of(store: str) -> str:
    """Return a store's URL without a namespace, or skip the test."""
    url = os.environ.get(f"UNSNARL_CLUSTER_{store.upper()}", "")
    if not url:
        reasons = os.environ.get("UNSNARL_CLUSTER_MISSING", "").splitlines()
        mine = [reason for reason in reasons if reason.startswith(f"no {store}")]
        pytest.skip(mine[0] if mine else "no servers: run scripts/cluster-tests")
    return url


def in_namespace(url: str, namespace: str) -> str:
    """Return the URL of a namespace of a store."""
    return f"{url}/{namespace}" if url.startswith("etcd") else f"{url}?namespace={namespace}"


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    """Return the name of each store in turn."""
    return str(request.param)


@pytest.fixture
def url(store: str) -> str:
    """Return the URL of a namespace that nobody else uses."""
    return in_namespace(url_of(store), uuid.uuid4().hex)


@pytest.fixture
def connect(url: str) -> Iterator[Callable[[], "Cluster"]]:
    """Return a function that makes one more connection to the namespace; all are closed at the end."""
    from unsnarl import cluster

    connections: list[Cluster] = []

    def make() -> "Cluster":
        connections.append(cluster.connect(url))
        return connections[-1]

    yield make
    for connection in connections:
        connection.close()


@pytest.fixture
def jobs(connect: Callable[[], "Cluster"]) -> "Cluster":
    """Return a connection."""
    return connect()
