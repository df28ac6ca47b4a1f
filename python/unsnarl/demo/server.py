"""The measured process: a stdlib threaded web server with CPU-bound threads beside it.

Run as ``python -m unsnarl.demo.server`` with its setup in the environment (see
``Setup``). It tells its parent the port on stdout, answers each line ``read`` on
stdin with what the CPU-bound threads have done, and ends when stdin ends.
Invariant: it never outlives its parent.
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
"""All connections of a load arrive at once; with the default of 5 some wait a second for a retry."""


class Setup(NamedTuple):
    """How a measured process is set up."""

    variant: str
    """One of ``variant.VARIANTS``."""
    hogs: int
    """CPU-bound threads beside the server."""
    parent: int
    """Process id of the parent, for a child that starts after its parent's death."""
    options: dict[str, Any]
    """Keyword arguments for ``unsnarl.gil.install``."""


def read_setup() -> Setup:
    """Return the setup the parent left in the environment."""
    return Setup(**json.loads(os.environ[VARIABLE]))


def tie_to_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, or die now if it has."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def send_to_parent(message: dict[str, Any]) -> None:
    """Write one line of JSON to the parent."""
    os.write(1, json.dumps(message).encode() + b"\n")


def apply_variant(setup: Setup) -> None:
    """Set this process up as its variant says; tell the parent and end if that cannot be."""
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
    wbufsize = -1  # unbuffered, the head and the body are two packets and meet delayed ACKs
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer with the path that was asked for."""
        body = json.dumps({"path": self.path, "thread": threading.get_ident()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: a line per request on stderr would be most of the work."""


class Server(ThreadingHTTPServer):
    """The standard library's threaded server, with room for many connections at once."""

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
    os._exit(0)  # every thread is a daemon: nothing is left to wait for


if __name__ == "__main__":
    main()
