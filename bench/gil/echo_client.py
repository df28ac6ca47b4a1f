"""The client of ``bench.gil.echo``: a process of its own, plain sockets, the standard library only.

Closed loop: one request is outstanding at a time, and the next is sent when its answer has arrived. Paced
(``--rate``): requests are sent on a fixed schedule, independent of the server, so that it is woken that often.
Protocol with the parent: the lines ``begin`` and ``end`` mark the measured
window, a third line is the result as JSON.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import statistics
import time

MESSAGE_BYTES = 16
TIMEOUT_S = 20.0
"""Seconds without any answer after which the run counts as hung."""


def connect(protocol: str, port: int) -> socket.socket:
    """Return a connected socket to the server on loopback."""
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    sock = socket.socket(socket.AF_INET, kind)
    sock.settimeout(TIMEOUT_S)
    sock.connect(("127.0.0.1", port))
    if protocol == "tcp":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def run_closed(sock: socket.socket, seconds: float) -> tuple[list[int], int]:
    """Send the next request on each answer; return latencies in ns and requests sent."""
    latencies_ns: list[int] = []
    message = bytes(MESSAGE_BYTES)
    clock = time.perf_counter_ns
    sent_ns = clock()
    until_ns = sent_ns + int(seconds * 1e9)
    while sent_ns < until_ns:
        sock.send(message)
        if len(sock.recv(MESSAGE_BYTES)) != MESSAGE_BYTES:
            raise ConnectionError("short answer")
        now_ns = clock()
        latencies_ns.append(now_ns - sent_ns)
        sent_ns = now_ns
    return latencies_ns, len(latencies_ns)


def run_paced(sock: socket.socket, seconds: float, rate: float) -> tuple[list[int], int]:
    """Send ``rate`` requests per second, independent of the answers; latency counts from the sending."""
    latencies_ns: list[int] = []
    clock = time.perf_counter_ns
    period_ns = int(1e9 / rate)
    next_ns = clock()
    until_ns = next_ns + int(seconds * 1e9)
    sent, pending = 0, b""
    while next_ns < until_ns:
        wait_ns = next_ns - clock()
        if wait_ns > 0:
            readable, _, _ = select.select([sock], [], [], wait_ns / 1e9)
            if readable:
                pending += sock.recv(1 << 16)
                now_ns = clock()
                while len(pending) >= MESSAGE_BYTES:
                    latencies_ns.append(now_ns - int.from_bytes(pending[:8], "little"))
                    pending = pending[MESSAGE_BYTES:]
            continue
        sock.send(clock().to_bytes(8, "little") + bytes(MESSAGE_BYTES - 8))
        sent += 1
        next_ns += period_ns
    return latencies_ns, sent


def summary(latencies_ns: list[int], sent: int, elapsed_s: float) -> dict[str, float]:
    """Return the figures of one window; percentiles in microseconds."""
    if len(latencies_ns) < 2:
        raise ConnectionError(f"only {len(latencies_ns)} answers to {sent} requests")
    percentiles = statistics.quantiles(latencies_ns, n=1000, method="inclusive")
    return {
        "requests_per_s": len(latencies_ns) / elapsed_s,
        "sent_per_s": sent / elapsed_s,
        "p50_us": percentiles[499] / 1e3,
        "p99_us": percentiles[989] / 1e3,
        "max_us": max(latencies_ns) / 1e3,
    }


def main() -> None:
    """Warm up, measure one window, print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("protocol", choices=("udp", "tcp"))
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second; 0: closed loop")
    arguments = parser.parse_args()

    def drive(seconds: float) -> tuple[list[int], int]:
        if arguments.rate:
            return run_paced(sock, seconds, arguments.rate)
        return run_closed(sock, seconds)

    with connect(arguments.protocol, arguments.port) as sock:
        drive(arguments.warmup)
        print("begin", flush=True)
        began_s = time.perf_counter()
        latencies_ns, sent = drive(arguments.seconds)
        elapsed_s = time.perf_counter() - began_s
        print("end", flush=True)
        print(json.dumps(summary(latencies_ns, sent, elapsed_s)), flush=True)


if __name__ == "__main__":
    main()
