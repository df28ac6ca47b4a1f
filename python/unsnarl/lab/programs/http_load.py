"""A load for a web server, used if ab is not installed: P requests at a time, each on a new connection.

    python -I -S http_load.py PORT P SECONDS

One thread and one selector. The standard library only.
"""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import sys
import time

REQUEST = b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
OK = b"HTTP/1.0 200"
TIMEOUT_S = 20.0


class Request:
    """One request over a new connection."""

    def __init__(self, port: int) -> None:
        """Connect and send the request."""
        self.began_s = time.perf_counter()
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.sock.sendall(REQUEST)
        self.data = b""

    def is_answered(self) -> bool:
        """Read the available bytes; True at the end of the answer."""
        data = self.sock.recv(65536)
        self.data += data
        if data:
            return False
        self.sock.close()
        if not self.data.startswith(OK):
            sys.exit("a request failed")
        return True


def drive(port: int, parallel: int, seconds: float) -> list[float]:
    """Keep ``parallel`` requests pending for ``seconds``; return their times in milliseconds."""
    selector = selectors.DefaultSelector()
    times_ms: list[float] = []

    def send() -> None:
        request = Request(port)
        selector.register(request.sock, selectors.EVENT_READ, request)

    for _ in range(parallel):
        send()
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s:
        ready = selector.select(TIMEOUT_S)
        if not ready:
            sys.exit(f"no answer for {TIMEOUT_S:g} s")
        for key, _ in ready:
            request = key.data
            descriptor = request.sock.fileno()
            if request.is_answered():
                selector.unregister(descriptor)
                times_ms.append((time.perf_counter() - request.began_s) * 1e3)
                send()
    return times_ms


def main() -> None:
    """Send requests for some seconds and print the figures."""
    port, parallel, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    times_ms = drive(port, parallel, seconds)
    figures = {"requests_per_s": len(times_ms) / seconds}
    if len(times_ms) > 1:
        percentiles = statistics.quantiles(times_ms, n=100, method="inclusive")
        figures |= {"p50_ms": percentiles[49], "p99_ms": percentiles[98]}
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
