"""Servers that suites need, on loopback, with a directory of their own.

Invariant: what was started here ends with the suite, and nothing that runs already is touched: if a port that tests
insist on is taken, the suite is not run; any other server has a port that was free, so that two runs can be side by
side.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from bench.crater.preparation import Unprepared

REDIS_PORT = 6379
"""The port that the tests of redis-py expect."""
POSTGRES_DATABASE = "psycopg2_test"
"""The database that the tests of psycopg2 expect."""
START_LIMIT_S = 60.0


@contextlib.contextmanager
def running(service: str) -> Generator[dict[str, str]]:
    """Run a server by name while the context lasts, and yield the variables by which the tests find it.

    An empty name starts nothing.

    Raises:
        Unprepared: it cannot be started.
    """
    if not service:
        yield {}
    elif service == "redis":
        with _redis():
            yield {}
    elif service == "postgres":
        with _postgres() as variables:
            yield variables
    else:
        raise Unprepared(f"there is no way here to start {service!r}")


@contextlib.contextmanager
def _redis() -> Generator[None]:
    server = shutil.which("valkey-server") or shutil.which("redis-server")
    if server is None:
        raise Unprepared("neither redis-server nor valkey-server is installed")
    with tempfile.TemporaryDirectory(prefix="crater-redis-") as folder:
        command = [server, "--bind", "127.0.0.1", "--port", str(REDIS_PORT), "--dir", folder, "--save", ""]
        with _server("redis", command, REDIS_PORT, signal.SIGTERM, None):
            yield


@contextlib.contextmanager
def _postgres() -> Generator[dict[str, str]]:
    """Run PostgreSQL as its own user where this is root, since it refuses to run as root."""
    programs = _postgres_programs()
    user = _postgres_user()
    # Not below TMPDIR, which may be closed to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="crater-postgres-", dir="/tmp") as folder:
        password = Path(folder, "password")
        password.write_text(secrets.token_hex(16))
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
            os.chown(password, user.pw_uid, user.pw_gid)
        data = f"{folder}/data"
        words = ["--pgdata", data, "--username", "postgres", "--auth", "scram-sha-256", "--pwfile", str(password)]
        words += ["--lc-messages", "C"]  # an account's language does not change what the server says
        uid, gid, groups = _become(user)
        made = subprocess.run(
            [programs / "initdb", *words], cwd=folder, capture_output=True, text=True, check=False,
            user=uid, group=gid, extra_groups=groups,
        )  # fmt: skip
        if made.returncode != 0:
            last = (made.stderr.strip().splitlines() or [f"status {made.returncode}"])[-1]
            raise Unprepared(f"PostgreSQL makes no directory: {last}")
        port = _free_port()  # the tests find it by the variables, which libpq reads
        variables = {
            "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres",
            "PGPASSWORD": password.read_text(),
        }  # fmt: skip
        command = [str(programs / "postgres"), "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder]
        command += ["-c", "fsync=off"]  # its data are gone at the end anyway, and the disk is other programs' too
        # As of its manual, SIGINT ends all sessions and then the server, in order.
        with _server("postgres", command, port, signal.SIGINT, user):
            _make_database(programs, variables)
            yield variables


def _postgres_user() -> pwd.struct_passwd | None:
    """Return the account that the server runs as; None keeps this process's own."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise Unprepared("PostgreSQL refuses to run as root, and there is no account 'postgres'") from None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _postgres_programs() -> Path:
    """Return the folder of the newest PostgreSQL's programs, which Debian keeps off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("postgres")
    if not found and on_path is None:
        raise Unprepared("postgres is not installed")
    return (found[-1] if found else Path(str(on_path)).resolve()).parent


def _make_database(programs: Path, variables: dict[str, str]) -> None:
    """Make the database; the server may listen a moment before it takes connections."""
    ends = time.monotonic() + START_LIMIT_S
    while True:
        made = subprocess.run(
            [programs / "createdb", POSTGRES_DATABASE], env=os.environ | variables, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if made.returncode == 0:
            return
        if time.monotonic() > ends:
            raise Unprepared(f"PostgreSQL makes no database: {made.stderr.strip()}")
        time.sleep(0.1)


@contextlib.contextmanager
def _server(
    name: str, command: list[str], port: int, ending: signal.Signals, user: pwd.struct_passwd | None
) -> Generator[None]:
    if _listens(port):
        raise Unprepared(f"another server has port {port}")
    uid, gid, groups = _become(user)
    process = subprocess.Popen(
        command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        user=uid, group=gid, extra_groups=groups,
    )  # fmt: skip
    try:
        _await(name, process, port)
        yield
    finally:
        process.send_signal(ending)
        process.wait()


def _become(user: pwd.struct_passwd | None) -> tuple[int | None, int | None, list[int] | None]:
    """Return with which user, group and further groups subprocess starts a program; None keeps this process's own."""
    return (None, None, None) if user is None else (user.pw_uid, user.pw_gid, [])


def _await(name: str, process: subprocess.Popen[bytes], port: int) -> None:
    ends = time.monotonic() + START_LIMIT_S
    while not _listens(port):
        if process.poll() is not None or time.monotonic() > ends:
            raise Unprepared(f"the {name} server does not start")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True
