"""A renewal waits for nothing that other requests wait for: no disk, no queue's lock, no replica.

Each test holds a lease for three times its ttl while something else of the same client, or of the server, stands still.
"""

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.servers import postgres_server, redis_server, replica_of

psycopg: Any = pytest.importorskip("psycopg")

LIMIT_S = 60.0
TTL_S = 1.0

SLOW_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

/* A disk that writes nothing while the file STALLED is there. */
static int flush(const char *name, int fd) {
    while (access(STALLED, F_OK) == 0) usleep(5000);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return flush("fsync", fd); }
int fdatasync(int fd) { return flush("fdatasync", fd); }
"""


@contextmanager
def postgres_on_a_disk_that_can_stall() -> Iterator[tuple[str, Path]]:
    """Run a PostgreSQL; its writes to the disk do not return while the file that is yielded with its URL is there."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    own = Path(tempfile.mkdtemp(prefix="unsnarl-disk-", dir="/tmp"))
    own.chmod(0o755)
    try:
        stalled, library = own / "stalled", own / "disk.so"
        words = [compiler, "-shared", "-fPIC", f'-DSTALLED="{stalled}"', "-o", str(library), "-xc", "-", "-ldl"]
        subprocess.run(words, input=SLOW_DISK, text=True, check=True, capture_output=True)
        with postgres_server(["env", f"LD_PRELOAD={library}"]) as (url, _):
            try:
                yield url, stalled
            finally:
                stalled.unlink(missing_ok=True)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def test_a_disk_that_writes_nothing_costs_postgresql_no_lease() -> None:
    from unsnarl import cluster

    with postgres_on_a_disk_that_can_stall() as (url, stalled), cluster.connect(url, timeout=LIMIT_S) as jobs:
        hold = jobs.lock("a", ttl=TTL_S).acquire()
        assert hold is not None
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.append(jobs.lock("b", ttl=TTL_S).acquire()))
        stalled.touch()
        other.start()
        before = jobs.statistics()["renewals"]
        assert hold.lost.wait(3 * TTL_S) is False
        assert jobs.statistics()["renewals"] - before >= 6
        assert found == []  # a grant is written to the disk before it counts
        stalled.unlink()
        other.join(LIMIT_S)
        found[0].release()
        hold.release()


def test_a_statement_that_waits_for_a_queue_costs_postgresql_no_lease() -> None:
    from unsnarl import cluster

    with postgres_server() as (url, _), cluster.connect(url, timeout=LIMIT_S) as jobs, psycopg.connect(url) as operator:
        hold = jobs.lock("a", ttl=TTL_S).acquire()
        assert hold is not None
        operator.execute("SELECT unsnarl_cluster_1.lock_queue('unsnarl', 'l:b')")
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.append(jobs.lock("b", ttl=TTL_S).acquire()))
        other.start()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while operator.execute(waits).fetchone() == (0,):
            pass
        assert hold.lost.wait(3 * TTL_S) is False
        assert found == []
        assert jobs.statistics()["reconnects"] == 0  # nor is the waiting statement given up
        operator.rollback()
        other.join(LIMIT_S)
        found[0].release()
        hold.release()


def test_a_server_without_a_connection_left_costs_postgresql_no_lease() -> None:
    from unsnarl import cluster

    with postgres_server() as (url, _), cluster.connect(url) as jobs, psycopg.connect(url, autocommit=True) as operator:
        operator.execute("CREATE ROLE one LOGIN CONNECTION LIMIT 1")
        operator.execute("GRANT USAGE ON SCHEMA unsnarl_cluster_1 TO one")
        operator.execute("GRANT ALL ON ALL TABLES IN SCHEMA unsnarl_cluster_1 TO one")
        operator.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA unsnarl_cluster_1 TO one")
        jobs.close()
        operator.execute("ALTER ROLE one CONNECTION LIMIT 2")  # a second one looks for a pooler
        with cluster.connect(url.replace("postgres@", "one@")) as few:
            operator.execute("ALTER ROLE one CONNECTION LIMIT 1")
            hold = few.lock("a", ttl=TTL_S).acquire()
            assert hold is not None
            assert hold.lost.wait(3 * TTL_S) is False
            hold.release()


def test_a_crash_of_postgresql_begins_every_ttl_again() -> None:
    from unsnarl import cluster

    with postgres_server() as (url, servers), cluster.connect(url) as jobs, cluster.connect(url) as others:
        hold = jobs.lock("a", ttl=10 * TTL_S).acquire()
        assert hold is not None
        gone = jobs.lock("b", ttl=TTL_S).acquire()
        assert gone is not None
        servers[0].kill()
        assert gone.lost.wait(LIMIT_S)
        servers[0].start()
        servers[0].wait()
        # What was not written to the disk is the time of the last renewal: the holder has not lost its lease.
        assert acquire(others.lock("a", ttl=TTL_S), timeout=TTL_S) is None
        hold.check()
        after = acquire(others.lock("b", ttl=TTL_S), timeout=LIMIT_S)
        assert after.fence > gone.fence
        after.release()
        assert hold.lost.wait(3 * TTL_S) is False
        hold.release()


def acquire(lock: Any, timeout: float) -> Any:
    """Acquire a lock of a store that is being started; None if another has it for that time."""
    from unsnarl import cluster

    while True:
        try:
            return lock.acquire(timeout=timeout)
        except cluster.StoreUnavailable:
            continue


def test_a_replica_that_is_away_costs_redis_no_lease(tmp_path: Path) -> None:
    from unsnarl import cluster

    with redis_server(tmp_path) as (url, servers), cluster.connect(f"{url}?replicas=1", timeout=20) as jobs:
        with replica_of(servers[0], tmp_path):
            hold = jobs.lock("a", ttl=TTL_S).acquire()
            assert hold is not None
        with pytest.raises(cluster.StoreUnavailable, match="0 of 1 replicas"):
            jobs.lock("b", ttl=TTL_S).acquire(timeout=LIMIT_S)
        hold.check()
        assert jobs.statistics()["reconnects"] == 0
        hold.release()


def test_server_that_is_slow_on_every_connection_for_a_while_costs_postgresql_no_lease() -> None:
    """A renewal is answered after half of the ttl, when its connection was given up as silent: it still counts."""
    from unsnarl import cluster

    ttl_s = 2 * TTL_S
    with postgres_server([]) as (url, _), cluster.connect(url, timeout=LIMIT_S) as jobs:
        hold = jobs.lock("a", ttl=ttl_s).acquire()
        assert hold is not None
        with psycopg.connect(url, autocommit=True) as own:
            (end,) = own.execute(f"SELECT clock_timestamp() + interval '{ttl_s * 0.95} s'").fetchone()
            own.execute(
                "CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF clock_timestamp() < '{end.isoformat()}' THEN PERFORM pg_sleep({ttl_s / 2}); END IF; "
                "RETURN NULL; END $$"
            )
            # For each statement, and so before any row is locked.
            own.execute(
                "CREATE TRIGGER doze BEFORE UPDATE ON unsnarl_cluster_1.renewal "
                "FOR EACH STATEMENT EXECUTE FUNCTION doze()"
            )
        assert hold.lost.wait(3 * ttl_s) is False
