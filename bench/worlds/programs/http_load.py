"""Load a server over kept connections, each with one request under way: ``http_load.py PORT CONNECTIONS SECONDS``.

One thread, epoll, bytes: it costs about 10 µs of processor time a request. Prints one line of JSON. The first fifth of
the time is warm-up and is not counted.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

REQUEST = b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
WARM_UP = 0.2


def connect(port: int, connections: int) -> dict[int, socket.socket]:
    """Return that many connections, by file descriptor."""
    made: dict[int, socket.socket] = {}
    for _ in range(connections):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made[connection.fileno()] = connection
    return made


def answer_length(data: bytes) -> int | None:
    """Return the whole length of the answer that ``data`` begins; None while its head is not complete."""
    head, separator, _ = data.partition(b"\r\n\r\n")
    if not separator:
        return None
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(head) + 4 + int(value)
    raise SystemExit("the answer has no Content-Length")


def load(port: int, connections: int, seconds: float) -> tuple[list[float], float]:
    """Return the latencies in seconds after the warm-up, and how long they were taken."""
    sockets = connect(port, connections)
    poller, begun_s, pending = select.epoll(), dict[int, float](), dict.fromkeys(sockets, b"")
    count_from_s = time.perf_counter() + seconds * WARM_UP
    end_s = count_from_s + seconds * (1 - WARM_UP)
    for fd, connection in sockets.items():
        poller.register(fd, select.EPOLLIN)
        begun_s[fd] = time.perf_counter()
        connection.sendall(REQUEST)
    latencies: list[float] = []
    now_s = time.perf_counter()
    while now_s < end_s:
        for fd, _ in poller.poll(1.0):
            data = sockets[fd].recv(65536)
            if not data:
                raise SystemExit("the server closed a connection")
            pending[fd] += data
            length = answer_length(pending[fd])
            if length is None or len(pending[fd]) < length:
                continue
            now_s = time.perf_counter()
            if now_s >= count_from_s:
                latencies.append(now_s - begun_s[fd])
            pending[fd] = b""
            begun_s[fd] = now_s
            sockets[fd].sendall(REQUEST)
        now_s = time.perf_counter()
    return latencies, now_s - count_from_s


def main() -> None:
    """Load and print."""
    latencies, elapsed_s = load(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    latencies.sort()
    at = [1e6 * latencies[int(len(latencies) * share)] if latencies else 0.0 for share in (0.5, 0.99)]
    print(json.dumps({"requests": len(latencies), "elapsed_s": elapsed_s, "p50_us": at[0], "p99_us": at[1]}))


if __name__ == "__main__":
    main()
