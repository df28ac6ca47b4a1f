"""Figures about a running program as Prometheus text, and an endpoint for them on loopback.

    from unsnarl import metrics
    print(metrics.text())
    with metrics.serve(port=9464) as endpoint: ...

The scheduler's figures are zero until it is installed. Nothing is collected in the background,
and nothing listens before ``serve`` is called.
"""

from __future__ import annotations

import os
import threading
import weakref
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Self

from unsnarl import gil
from unsnarl.gil_stats import GilStats

__all__ = ["CONTENT_TYPE", "Endpoint", "serve", "text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of Prometheus' text exposition format."""

LOOPBACK = ("127.0.0.1", "localhost")
"""Hosts on which an endpoint may listen: the figures contain names of threads, and readers are not authenticated."""

_Sample = tuple[str, float]
_Metric = tuple[str, str, str, list[_Sample]]


def text() -> str:
    """Return the figures of this process in Prometheus' text format; thread-safe."""
    lines: list[str] = []
    for name, kind, purpose, samples in _metrics(gil.stats()):
        lines += [f"# HELP {name} {purpose}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{labels} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(value)


def _metrics(stats: GilStats) -> list[_Metric]:
    return [
        (
            "unsnarl_scheduler_installed",
            "gauge",
            "Whether the GIL scheduler is installed.",
            [("", int(gil.installed()))],
        ),
        ("unsnarl_threads", "gauge", "Threads that threading knows.", [("", threading.active_count())]),
        ("unsnarl_gil_waiting", "gauge", "Threads that are waiting for the GIL.", [("", stats.waiting_now)]),
        _counter("unsnarl_gil_hand_overs", "Hand-overs of the GIL to another thread.", stats.hand_overs),
        _counter("unsnarl_gil_aged_picks", "Times an old waiter was picked out of order.", stats.aged_picks),
        _counter("unsnarl_gil_share_picks", "Times CPU-bound threads were granted their share.", stats.share_picks),
        _counter("unsnarl_gil_lingers", "Times a dropped GIL was left for its last holder.", stats.lingers),
        (
            "unsnarl_gil_longest_hold_seconds",
            "gauge",
            "Longest time one thread held the GIL while another waited.",
            [("", stats.longest_hold_ns / 1e9)],
        ),
        *_by_class(stats),
    ]


def _counter(name: str, purpose: str, value: int) -> _Metric:
    return (f"{name}_total", "counter", purpose, [("", value)])


def _by_class(stats: GilStats) -> list[_Metric]:
    def each(field: str, scale: float = 1) -> list[_Sample]:
        return [
            (f'{{class="{entry.name}"}}', getattr(entry, field) / scale if scale != 1 else getattr(entry, field))
            for entry in stats.classes
        ]

    waits: list[_Sample] = []
    for entry in stats.classes:
        waits.append((f'{{class="{entry.name}",quantile="0.5"}}', entry.wait_p50_ns / 1e9))
        waits.append((f'{{class="{entry.name}",quantile="0.99"}}', entry.wait_p99_ns / 1e9))
    return [
        ("unsnarl_gil_waits_total", "counter", "Waits for the GIL.", each("waits")),
        ("unsnarl_gil_forced_drops_total", "counter", "Drops of the GIL on request.", each("forced_drops")),
        ("unsnarl_gil_barged_total", "counter", "Times another thread took the GIL first.", each("barged")),
        ("unsnarl_gil_wait_quantile_seconds", "gauge", "Waits for the GIL since the last reset, by quantile.", waits),
        ("unsnarl_gil_wait_max_seconds", "gauge", "Longest wait for the GIL.", each("wait_max_ns", 1e9)),
        ("unsnarl_gil_wait_seconds_total", "counter", "Time spent waiting for the GIL.", each("wait_sum_ns", 1e9)),
    ]


class _Handler(BaseHTTPRequestHandler):
    """Answers ``GET /metrics``, and every other path with a pointer to it."""

    server_version = "unsnarl"
    timeout = 30
    """Seconds a reader may take to send its request, or to read the answer: none occupies a thread for ever."""

    def do_GET(self) -> None:
        """Answer with the figures."""
        if self.path.partition("?")[0] == "/metrics":
            self._answer(200, text())
        else:
            self._answer(404, "the figures are at /metrics\n")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: stderr belongs to the program."""


class _Server(ThreadingHTTPServer):
    """A server that prints nothing when a reader disconnects during an answer."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = False
    """With it, the kernel would distribute readers over two endpoints on one port."""
    request_queue_size = 128
    """With socketserver's five, the kernel rejects a sixth simultaneous reader, which retries seconds later."""

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of this machine's name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Write nothing: stderr belongs to the program."""


class Endpoint:
    """An endpoint that answers until it is closed or the program ends.

    An endpoint belongs to the process that created it. The child of a fork does not inherit it and
    may create another.
    """

    __slots__ = ("_owner", "_server", "_thread")

    def __init__(self, server: ThreadingHTTPServer) -> None:
        """Start to answer, in a daemon thread."""
        self._owner = os.getpid()
        self._server = server
        _servers.add(server)
        self._thread = threading.Thread(target=server.serve_forever, name="unsnarl-metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Return the port on which the endpoint listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Return the address of the figures."""
        return f"http://127.0.0.1:{self.port}/metrics"

    def close(self) -> None:
        """Stop listening, and wait for the answering thread to end. Closing again does nothing.

        In the child of a fork it does nothing.
        """
        if os.getpid() != self._owner:
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        """Return the endpoint."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the endpoint."""
        self.close()


_servers: weakref.WeakSet[ThreadingHTTPServer] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """Close the child's copies of the sockets, which would keep the ports in use after the parent has ended."""
    for server in list(_servers):
        server.socket.close()
    _servers.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def serve(port: int = 0, *, host: str = "127.0.0.1") -> Endpoint:
    """Answer ``GET /metrics`` on a port of this machine, from a daemon thread.

    Args:
        port: the port, or 0 for any that is free; see ``Endpoint.port``.
        host: a loopback address; the figures are for this machine only.

    Raises:
        ValueError: the host is not loopback, or the port is out of range.
        OSError: the port is in use.
    """
    if host not in LOOPBACK:
        raise ValueError(f"an endpoint listens on loopback only, {' or '.join(LOOPBACK)}, not on {host!r}")
    if not 0 <= port <= 65535:
        raise ValueError(f"a port is between 0 and 65535, not {port!r}")
    return Endpoint(_Server((host, port), _Handler))
