"""What is particular to a store: TLS, passwords, poolers, replicas, lost data; and what a hand-over costs."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import TYPE_CHECKING

import pytest

from tests.cluster.conftest import STORES
from tests.cluster.servers import (
    Server,
    command,
    free_port,
    postgres_server,
    program,
    redis_server,
    replica_of,
    running,
    servers_of,
)

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster

LIMIT_S = 30.0


@pytest.mark.parametrize("store", STORES)
def test_a_store_that_stops_costs_the_lease_and_no_more(store: str, tmp_path: Path) -> None:
    from unsnarl import cluster

    with servers_of(store, tmp_path) as (url, servers), cluster.connect(url, timeout=5) as jobs:
        hold = jobs.lock("a", ttl=1).acquire()
        assert hold is not None
        for server in servers:
            server.send(SIGSTOP)
        assert hold.lost.wait(LIMIT_S)
        with pytest.raises(cluster.LeaseLost, match="no renewal"):
            hold.check()
        with pytest.raises(cluster.StoreUnavailable):
            jobs.lock("b", ttl=1).acquire()
        for server in servers:
            server.send(SIGCONT)
        after = None
        while after is None:
            try:
                after = jobs.lock("a", ttl=1).acquire(timeout=LIMIT_S)
            except cluster.StoreUnavailable:
                continue
        assert after.fence > hold.fence
        after.release()


def test_a_hand_over_costs_as_many_requests_with_more_waiters(connect: "Callable[[], Cluster]") -> None:
    connections = [connect(), connect()]

    def requests_of(waiters: int) -> float:
        locks = [connection.lock(f"line of {waiters}") for connection in connections]
        hold = locks[0].acquire()
        assert hold is not None

        def serve(number: int) -> None:
            with locks[number % 2]:
                pass

        threads = [threading.Thread(target=serve, args=(number,)) for number in range(waiters)]
        for thread in threads:
            thread.start()
        while locks[0].statistics()["waiting"] < waiters:
            pass
        before = sum(connection.statistics()["requests"] for connection in connections)
        hold.release()
        for thread in threads:
            thread.join()
        return (sum(connection.statistics()["requests"] for connection in connections) - before) / waiters

    few, many = requests_of(5), requests_of(40)
    assert many <= few * 1.2


# ---------------------------------------------------------------- PostgreSQL and a standby


def test_the_primary_among_the_hosts_is_found() -> None:
    from unsnarl import cluster

    with postgres_server() as (url, servers):
        primary = servers[0]
        standby, port = primary.directory / "standby", free_port()
        copy = [program("pg_basebackup"), "-D", str(standby), "-R", "-d", url]
        user = "postgres" if os.geteuid() == 0 else None
        subprocess.run(copy, check=True, capture_output=True, user=user, cwd=primary.directory)
        words = [
            program("postgres"),
            "-D",
            str(standby),
            "-p",
            str(port),
            "-h",
            "127.0.0.1",
            "-k",
            str(primary.directory),
        ]
        with running([Server(("127.0.0.1", port), words, log=primary.directory / "standby.log", user="postgres")]):
            first = url.replace("@", f"@127.0.0.1:{port},")
            with cluster.connect(first) as jobs, jobs.lock("a", ttl=1) as hold:
                assert hold.lost.wait(1) is False
                hold.check()
            alone = f"postgresql://postgres@127.0.0.1:{port}/postgres"
            while subprocess.run([program("pg_isready"), "-q", "-d", alone], check=False).returncode != 0:
                pass
            with pytest.raises(cluster.StoreUnavailable, match="is a standby"):
                cluster.connect(alone, timeout=1)


# ---------------------------------------------------------------- PostgreSQL behind PgBouncer


@pytest.fixture
def bouncer() -> Iterator[Callable[[str], str]]:
    """Return a function that starts PgBouncer in a mode, before a PostgreSQL, and returns its URL."""
    pgbouncer = program("pgbouncer")
    with postgres_server() as (_, servers):
        started: list[Server] = []
        port = servers[0].address[1]

        def start(mode: str) -> str:
            listen = free_port()
            settings = servers[0].directory / f"{mode}.ini"
            settings.write_text(
                f"[databases]\npostgres = host=127.0.0.1 user=postgres port={port}\n"
                f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {listen}\nauth_type = any\n"
                f"pool_mode = {mode}\nunix_socket_dir =\n"
            )
            server = Server(
                ("127.0.0.1", listen), [pgbouncer, str(settings)], log=settings.with_suffix(".log"), user="postgres"
            )
            server.start()
            server.wait()
            started.append(server)
            return f"postgresql://postgres@127.0.0.1:{listen}/postgres"

        yield start
        for server in started:
            server.end()


def test_a_pooler_in_transaction_mode_is_refused_with_words(bouncer: Callable[[str], str]) -> None:
    from unsnarl import cluster

    with pytest.raises(cluster.StoreRefused, match="pooler in transaction mode"):
        cluster.connect(bouncer("transaction"))


def test_a_pooler_in_session_mode_serves(bouncer: Callable[[str], str]) -> None:
    from unsnarl import cluster

    with cluster.connect(bouncer("session")) as jobs, jobs.lock("a") as hold:
        hold.check()


# ---------------------------------------------------------------- Redis


def test_the_fence_grows_though_the_data_is_lost(tmp_path: Path) -> None:
    from unsnarl import cluster

    with redis_server(tmp_path) as (url, servers), cluster.connect(url) as jobs:
        hold = jobs.lock("a", ttl=1).acquire()
        assert hold is not None
        assert command(servers[0].address[1], "FLUSHALL").startswith(b"+OK")
        after = jobs.lock("a", ttl=2).acquire()
        assert after is not None
        assert after.fence > hold.fence
        assert hold.lost.wait(LIMIT_S)
        after.release()


def test_a_grant_waits_for_replicas(tmp_path: Path) -> None:
    from unsnarl import cluster

    with redis_server(tmp_path) as (url, servers):
        alone = cluster.connect(f"{url}?replicas=1", timeout=1)
        with alone, pytest.raises(cluster.StoreUnavailable, match="0 of 1 replicas"):
            alone.lock("a", ttl=1).acquire()
        replicated = f"{url}?replicas=1"
        with replica_of(servers[0], tmp_path), cluster.connect(replicated, timeout=5) as jobs, jobs.lock("a") as hold:
            hold.check()


# ---------------------------------------------------------------- TLS and passwords


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Return a directory with an authority (ca.pem), and a server's certificate and key (cert.pem, key.pem)."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    made = tmp_path / "certificates"
    made.mkdir()
    subject = ["-nodes", "-days", "2", "-newkey", "rsa:2048"]

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=made)

    openssl("req", "-x509", *subject, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=an authority",
            "-addext", "basicConstraints=critical,CA:TRUE")  # fmt: skip
    openssl("req", *subject, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost")
    (made / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "names", "-out", "cert.pem")  # fmt: skip
    return made


def works(url: str, authority: Path) -> None:
    """Take a lock over TLS with the authority, and see that it is refused without."""
    from unsnarl import cluster

    with cluster.connect(url, ca=str(authority)) as jobs, jobs.lock("a") as hold:
        hold.check()
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.connect(url, tls="true", timeout=1)
    assert "hunter2" not in str(caught.value)


def test_redis_over_tls_with_a_password(tmp_path: Path, certificates: Path) -> None:
    from unsnarl import cluster

    port = free_port()
    words = [program("valkey-server", "redis-server"), "--port", "0", "--tls-port", str(port), "--dir", str(tmp_path)]
    for option, name in (("--tls-cert-file", "cert"), ("--tls-key-file", "key"), ("--tls-ca-cert-file", "ca")):
        words += [option, str(certificates / f"{name}.pem")]
    words += ["--tls-auth-clients", "no", "--requirepass", "hunter2"]
    with running([Server(("127.0.0.1", port), words, log=tmp_path / "log")]):
        works(f"rediss://:hunter2@localhost:{port}", certificates / "ca.pem")
        with pytest.raises(cluster.StoreRefused):
            cluster.connect(f"rediss://localhost:{port}", ca=str(certificates / "ca.pem"))


def test_etcd_over_tls(tmp_path: Path, certificates: Path) -> None:
    port, peers = free_port(), f"http://127.0.0.1:{free_port()}"
    here = f"https://localhost:{port}"
    words = [program("etcd"), "--data-dir", str(tmp_path / "etcd"), "--listen-client-urls", f"https://127.0.0.1:{port}"]
    words += ["--advertise-client-urls", here, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    words += ["--initial-cluster", f"default={peers}", "--cert-file", str(certificates / "cert.pem")]
    words += ["--key-file", str(certificates / "key.pem")]
    with running([Server(("127.0.0.1", port), words, log=tmp_path / "log")]):
        works(f"etcds://localhost:{port}/jobs", certificates / "ca.pem")


def test_etcd_with_a_password(tmp_path: Path) -> None:
    from unsnarl import cluster

    port, peers = free_port(), f"http://127.0.0.1:{free_port()}"
    here = f"http://127.0.0.1:{port}"
    words = [program("etcd"), "--data-dir", str(tmp_path / "etcd"), "--listen-client-urls", here]
    words += ["--advertise-client-urls", here, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    words += ["--initial-cluster", f"default={peers}"]
    with running([Server(("127.0.0.1", port), words, log=tmp_path / "log")]):
        etcdctl = [program("etcdctl"), "--endpoints", here]
        for call in (["user", "add", "root:hunter2"], ["user", "grant-role", "root", "root"], ["auth", "enable"]):
            subprocess.run([*etcdctl, *call], check=True, capture_output=True, env={"ETCDCTL_API": "3"})
        with cluster.connect(f"etcd://root:hunter2@127.0.0.1:{port}/jobs") as jobs, jobs.lock("a") as hold:
            hold.check()
        with pytest.raises(cluster.StoreRefused, match="refuses"):
            cluster.connect(f"etcd://root:wrong@127.0.0.1:{port}/jobs")
        stranger = cluster.connect(f"etcd://127.0.0.1:{port}/jobs", timeout=1)
        with stranger, pytest.raises(cluster.ClusterError):
            stranger.lock("a").acquire()


def test_postgres_over_tls(certificates: Path) -> None:
    with postgres_server() as (url, servers):
        data = servers[0].directory / "data"
        for name, mode in (("cert", 0o644), ("key", 0o600)):
            copy = data / f"{name}.pem"
            shutil.copy(certificates / f"{name}.pem", copy)
            shutil.chown(copy, data.owner())
            copy.chmod(mode)
        with (data / "postgresql.conf").open("a") as settings:
            settings.write("ssl = on\nssl_cert_file = 'cert.pem'\nssl_key_file = 'key.pem'\n")
        servers[0].end()
        servers[0].start()
        servers[0].wait()
        works(url.replace("127.0.0.1", "localhost"), certificates / "ca.pem")
