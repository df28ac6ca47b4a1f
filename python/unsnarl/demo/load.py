"""A closed-loop HTTP load: c kept-alive connections, each of which sends the next request on its answer.

A separate program, run by path in isolated mode (``python -I -S load.py``). It imports the standard
library only, so that nothing of unsnarl is in the process that holds the clock. One thread with one
epoll: the load must never be the bottleneck. The lines ``begin`` and ``end`` on stdout mark the
measured window, a third line is the result as JSON. Invariant: one request at a time per connection.
"""

from __future__ import annotations

import argparse
import json
import re
import select
import socket
import statistics
import sys
import time
from typing import NamedTuple

REQUEST = b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n"
CONTENT_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
OK = b"HTTP/1.1 200"
TIMEOUT_S = 20.0
"""Seconds without any answer after which the server counts as hung."""
ACCEPT_GRACE_S = 1.5
"""Seconds by which the warm-up may be extended, for a server that is slow to accept."""


class ServerError(Exception):
    """The server closed a connection, answered with an error, or did not answer."""


class Connection:
    """One kept-alive connection with at most one pending request."""

    __slots__ = ("pending", "sent_ns", "sock")

    def __init__(self, port: int) -> None:
        """Connect to ``port`` on loopback."""
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""
        self.sent_ns = 0

    def request(self, now_ns: int) -> None:
        """Send the next request."""
        self.sent_ns = now_ns
        self.sock.send(REQUEST)

    def is_answered(self) -> bool:
        """Read the available bytes; True if they complete the answer."""
        data = self.sock.recv(65536)
        if not data:
            raise ServerError("the server closed a connection")
        self.pending += data
        size = answer_size(self.pending)
        if size is None or len(self.pending) < size:
            return False
        if not self.pending.startswith(OK):
            raise ServerError(self.pending.partition(b"\r\n")[0].decode("latin-1"))
        self.pending = self.pending[size:]
        return True


def answer_size(data: bytes) -> int | None:
    """Return the length of the answer at the start of ``data``, head included; None for an incomplete head."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = CONTENT_LENGTH.search(data, 0, end)
    if length is None:
        raise ServerError("an answer without Content-Length")
    return end + 4 + int(length[1])


class Load:
    """All connections and the epoll they share."""

    def __init__(self, port: int, connections: int) -> None:
        """Connect ``connections`` times and send the first request on each."""
        self._poll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._unanswered: set[int] = set()
        for _ in range(connections):
            connection = Connection(port)
            self._by_fd[connection.sock.fileno()] = connection
            self._unanswered.add(connection.sock.fileno())
            self._poll.register(connection.sock, select.EPOLLIN)
            connection.request(time.perf_counter_ns())

    def warm_up(self, seconds: float) -> None:
        """Drive for ``seconds``, and longer until every connection has had an answer, within a limit."""
        self.drive(seconds)
        until_s = time.monotonic() + ACCEPT_GRACE_S
        while self._unanswered and time.monotonic() < until_s:
            self.drive(0.05)

    def drive(self, seconds: float) -> list[int]:
        """Keep every connection busy for ``seconds``; return the answers' latencies in ns."""
        latencies_ns: list[int] = []
        clock, by_fd, poll = time.perf_counter_ns, self._by_fd, self._poll.poll
        until_ns = clock() + int(seconds * 1e9)
        while (left_ns := until_ns - clock()) > 0:
            for fd, _ in poll(left_ns / 1e9):
                connection = by_fd[fd]
                if connection.is_answered():
                    now_ns = clock()
                    latencies_ns.append(now_ns - connection.sent_ns)
                    connection.request(now_ns)
                    self._unanswered.discard(fd)
        return latencies_ns


class Result(NamedTuple):
    """The figures of one window; latencies in microseconds, None without answers."""

    requests_per_s: float
    p50_us: float | None
    p99_us: float | None


def result_of(latencies_ns: list[int], elapsed_s: float) -> Result:
    """Return the figures of one window."""
    if len(latencies_ns) < 2:
        return Result(len(latencies_ns) / elapsed_s, None, None)
    percentiles = statistics.quantiles(latencies_ns, n=100, method="inclusive")
    return Result(len(latencies_ns) / elapsed_s, percentiles[49] / 1e3, percentiles[98] / 1e3)


def main() -> int:
    """Warm up, measure one window and print the result; return 1 with an error line if the server fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("-c", "--connections", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--warmup", type=float, default=0.2)
    arguments = parser.parse_args()
    try:
        load = Load(arguments.port, arguments.connections)
        load.warm_up(arguments.warmup)
        print("begin", flush=True)
        began_s = time.perf_counter()
        latencies_ns = load.drive(arguments.seconds)
        elapsed_s = time.perf_counter() - began_s
        print("end", flush=True)
    except (OSError, ServerError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    print(json.dumps(result_of(latencies_ns, elapsed_s)._asdict()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
