"""The measured process: the standard library's threaded web server, with CPU-bound threads.

Run as ``python -m unsnarl.demo.server`` with its setup in the environment (see ``Setup``). It writes
its port to stdout, answers each line ``read`` on stdin with the work of the CPU-bound threads, and
ends when stdin ends. Invariant: it never outlives its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from unsnarl.demo import variant
from unsnarl.demo.hogs import Hogs
from unsnarl.errors import UnsupportedInterpreter

VARIABLE = "UNSNARL_DEMO"
"""Environment variable that carries the setup, as JSON."""

PR_SET_PDEATHSIG = 1  # linux/prctl.h
BACKLOG = 256
"""All connections of a load arrive together; with the default of 5, some wait a second for a retry."""


class Setup(NamedTuple):
    """The setup of a measured process."""

    variant: str
    """One of ``variant.VARIANTS``."""
    hogs: int
    """CPU-bound threads in the server's process."""
    parent: int
    """Process id of the parent, with which a child detects that the parent died before the child started."""
    options: dict[str, Any]
    """Keyword arguments for ``unsnarl.gil.install``."""


def read_setup() -> Setup:
    """Return the setup from the environment."""
    return Setup(**json.loads(os.environ[VARIABLE]))


def tie_to_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies; exit if the parent has died already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def send_to_parent(message: dict[str, Any]) -> None:
    """Write one line of JSON to the parent."""
    os.write(1, json.dumps(message).encode() + b"\n")


def apply_variant(setup: Setup) -> None:
    """Apply the variant to this process; if that fails, report it to the parent and exit."""
    try:
        variant.enter(setup.variant, setup.options)
    except UnsupportedInterpreter as refusal:
        send_to_parent({"error": refusal.reason, "hint": refusal.hint})
        os._exit(1)


def answer_parent(hogs: Hogs) -> None:
    """Answer the parent's lines until there are no more."""
    for _ in iter(sys.stdin.readline, ""):
        reading = hogs.read()
        send_to_parent({"at_s": reading.at_s, "work": reading.work})


class Handler(BaseHTTPRequestHandler):
    """Answers every GET with a small JSON document over a kept connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # unbuffered, head and body would be two packets, delayed by delayed ACKs
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer with the requested path."""
        body = json.dumps({"path": self.path, "thread": threading.get_ident()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a line per request on stderr would be most of the work."""


class Server(ThreadingHTTPServer):
    """The standard library's threaded server, with a longer accept queue."""

    request_queue_size = BACKLOG
    daemon_threads = True


def main() -> None:
    """Serve until the parent closes this process's stdin."""
    setup = read_setup()
    tie_to_parent(setup.parent)
    apply_variant(setup)
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, name="accept", daemon=True).start()
    hogs = Hogs(setup.hogs)
    send_to_parent({"port": server.server_address[1]})
    answer_parent(hogs)
    os._exit(0)  # all threads are daemons: there is nothing to wait for


if __name__ == "__main__":
    main()
