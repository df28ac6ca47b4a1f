"""An echo thread next to k CPU-bound threads: its rate and latency, and its cost for the others.

The measured process runs the echo thread and the hogs. The client is another process (``echo_client``) that imports
nothing of unsnarl. The client determines the window: the hogs' counts are read when it prints ``begin`` and ``end``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from bench import run
from unsnarl.demo.child import Child
from unsnarl.demo.hogs import Hogs, jain, rates

CLIENT = Path(__file__).with_name("echo_client.py")
BUFFER_BYTES = 2048
TIMEOUT_S = 30.0
"""Seconds after its window before a silent client counts as hung."""


def serve_udp(sock: socket.socket) -> None:
    """Answer every datagram with itself until the socket is closed."""
    while True:
        data, peer = sock.recvfrom(BUFFER_BYTES)
        sock.sendto(data, peer)


def serve_tcp(listener: socket.socket) -> None:
    """Accept one connection and echo its bytes until it ends."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(BUFFER_BYTES):
        connection.sendall(data)


def start_server(protocol: str) -> int:
    """Start the echo thread; return the port the kernel chose."""
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    sock = socket.socket(socket.AF_INET, kind)
    sock.bind(("127.0.0.1", 0))
    if protocol == "tcp":
        sock.listen()
    target = serve_udp if protocol == "udp" else serve_tcp
    threading.Thread(target=target, args=(sock,), name="echo", daemon=True).start()
    return int(sock.getsockname()[1])


def client_command(arguments: argparse.Namespace, port: int) -> list[str]:
    """Return the client's command: isolated, without site-packages."""
    return [
        *(sys.executable, "-I", "-S", str(CLIENT), arguments.protocol, str(port)),
        *("--seconds", str(arguments.seconds), "--warmup", str(arguments.warmup)),
        *("--rate", str(arguments.rate)),
    ]


def measure(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Run one window; return its figures and the scheduler's statistics."""
    port = start_server(arguments.protocol)
    hogs = Hogs(arguments.hogs)
    with Child("echo client", client_command(arguments, port), os.environ) as client:
        client.expect("begin", TIMEOUT_S + arguments.warmup)
        run.reset_stats(arguments)
        begin, used_begin = hogs.read(), resource.getrusage(resource.RUSAGE_SELF)
        client.expect("end", TIMEOUT_S + arguments.seconds)
        end, used_end = hogs.read(), resource.getrusage(resource.RUSAGE_SELF)
        gil = run.stats(arguments)
        figures: dict[str, Any] = json.loads(client.receive(TIMEOUT_S))
    work = rates(begin, end)
    switches = used_end.ru_nvcsw - used_begin.ru_nvcsw + used_end.ru_nivcsw - used_begin.ru_nivcsw
    figures["work_per_s"] = sum(work)
    figures["work_each_per_s"] = work
    figures["jain"] = jain(work)
    figures["context_switches_per_s"] = switches / (end.at_s - begin.at_s)
    return figures, gil


def main() -> None:
    """Measure one window and print it."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("--protocol", choices=("udp", "tcp"), default="udp")
    parser.add_argument("-k", "--hogs", type=int, default=1, metavar="K", help="CPU-bound threads")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second; 0: closed loop")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    arguments = parser.parse_args()
    run.begin(arguments)
    figures, gil = measure(arguments)
    parameters = {"protocol": arguments.protocol, "hogs": arguments.hogs, "rate": arguments.rate}
    run.print_line("echo", arguments, parameters, figures, gil)
    os._exit(0)  # the hogs are daemons: an orderly exit would measure CPython's finalisation


if __name__ == "__main__":
    main()
