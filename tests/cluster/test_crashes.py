"""What a crash of a store undoes is done again by the client that had been told it was done."""

from typing import Any

import pytest

from tests.cluster.servers import postgres_server

psycopg: Any = pytest.importorskip("psycopg")

LIMIT_S = 60.0
TRIES = 20
TTL_S = 120.0  # longer than the test may take: no lock comes free by itself


def test_a_release_that_a_crash_of_postgresql_has_undone_is_repeated() -> None:
    from unsnarl import cluster

    with postgres_server() as (url, servers), cluster.connect(url) as jobs, cluster.connect(url) as others:
        kept = jobs.lock("kept", ttl=TTL_S).acquire()
        assert kept is not None
        with psycopg.connect(url, autocommit=True) as operator:
            # Nothing is written to the disk now but for commits that wait for it.
            operator.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            operator.execute("SELECT pg_reload_conf()")
            hold = released_in_memory_alone(jobs, operator)
        servers[0].kill()
        servers[0].start()
        servers[0].wait()
        after = until_served(lambda: others.lock("a", ttl=TTL_S).acquire(timeout=LIMIT_S))
        assert after is not None
        assert after.fence > hold.fence
        # The client keeps the tickets that it still has.
        kept.check()
        assert others.lock("kept", ttl=TTL_S).acquire(timeout=0) is None
        after.release()
        kept.release()


def released_in_memory_alone(jobs: Any, operator: Any) -> Any:
    """Release a lock until the release is not on the disk: the server may still write for its old delay once."""
    for _ in range(TRIES):
        hold = jobs.lock("a", ttl=TTL_S).acquire()
        assert hold is not None
        hold.release()
        sql = "SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()"
        if operator.execute(sql).fetchone() == (True,):
            return hold
    raise AssertionError("each release was on the disk at once: the crash would undo nothing")


def test_a_grant_of_postgresql_is_on_the_disk_before_it_counts() -> None:
    from unsnarl import cluster

    with (
        postgres_server() as (url, _),
        cluster.connect(url) as jobs,
        psycopg.connect(url, autocommit=True) as operator,
    ):
        operator.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        operator.execute("SELECT pg_reload_conf()")
        for _ in range(20):
            hold = jobs.lock("a", ttl=TTL_S).acquire()
            assert hold is not None
            sql = "SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()"
            assert operator.execute(sql).fetchone() == (False,)
            hold.release()


def until_served(call: Any) -> Any:
    """Call until the store, which is being started, serves."""
    from unsnarl import cluster

    while True:
        try:
            return call()
        except cluster.StoreUnavailable:
            continue
