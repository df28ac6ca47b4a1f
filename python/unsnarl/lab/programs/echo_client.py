"""A closed-loop client for datagrams on loopback, which times every round trip.

    python -I -S echo_client.py PORT SECONDS

Prints ``begin`` and ``end`` around the window, then its figures. Invariant: it imports the standard library
only, so that nothing of unsnarl is in the process that holds the clock.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time

MESSAGE = bytes(16)
TIMEOUT_S = 20.0
"""Seconds without an answer after which the server counts as hung."""
WARMUP_S = 0.2


def drive(client: socket.socket, seconds: float) -> list[float]:
    """Send and receive for ``seconds``; return the round trips in microseconds."""
    clock = time.perf_counter
    latencies_us: list[float] = []
    sent_s = clock()
    until_s = sent_s + seconds
    while sent_s < until_s:
        client.send(MESSAGE)
        client.recv(len(MESSAGE))
        now_s = clock()
        latencies_us.append((now_s - sent_s) * 1e6)
        sent_s = now_s
    return latencies_us


def main() -> None:
    """Warm up, measure one window, print."""
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(TIMEOUT_S)
    client.connect(("127.0.0.1", port))
    drive(client, WARMUP_S)
    print("begin", flush=True)
    began_s = time.perf_counter()
    latencies_us = drive(client, seconds)
    elapsed_s = time.perf_counter() - began_s
    print("end", flush=True)
    figures = {"requests_per_s": len(latencies_us) / elapsed_s}
    if len(latencies_us) > 1:
        percentiles = statistics.quantiles(latencies_us, n=100, method="inclusive")
        figures |= {"p50_us": percentiles[49], "p99_us": percentiles[98]}
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
