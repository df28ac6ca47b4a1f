"""Servers that suites need, on loopback, with a directory of their own.

Invariant: what was started here ends with the suite, and nothing that runs already is touched: if the port is taken,
the suite is not run.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator

from bench.crater.preparation import Unprepared

REDIS_PORT = 6379
"""The port that the tests of redis-py expect."""
START_LIMIT_S = 20.0


@contextlib.contextmanager
def running(service: str) -> Generator[None]:
    """Run a server by name while the context lasts; nothing for an empty name.

    Raises:
        Unprepared: it cannot be started.
    """
    if not service:
        yield
        return
    if service != "redis":
        raise Unprepared(f"there is no way here to start {service!r}")
    server = shutil.which("valkey-server") or shutil.which("redis-server")
    if server is None:
        raise Unprepared("neither redis-server nor valkey-server is installed")
    if _listens(REDIS_PORT):
        raise Unprepared(f"another server has port {REDIS_PORT}")
    with tempfile.TemporaryDirectory(prefix="crater-redis-") as folder:
        command = [server, "--bind", "127.0.0.1", "--port", str(REDIS_PORT), "--dir", folder, "--save", ""]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await(process)
            yield
        finally:
            process.terminate()
            process.wait()


def _await(process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + START_LIMIT_S
    while not _listens(REDIS_PORT):
        if process.poll() is not None or time.monotonic() > ends:
            raise Unprepared("the redis server does not start")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True
