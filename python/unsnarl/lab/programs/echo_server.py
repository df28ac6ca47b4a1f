"""A thread that answers datagrams next to CPU-bound threads; the client is another process.

Prints its port, answers each line on stdin with the time and the work of the CPU-bound
threads, and ends when stdin ends.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

import measured
import pairs

BUFFER_BYTES = 2048


def serve(server: socket.socket) -> None:
    """Answer every datagram with itself."""
    while True:
        data, peer = server.recvfrom(BUFFER_BYTES)
        server.sendto(data, peer)


def main() -> None:
    """Serve until stdin ends."""
    parser = measured.parser(__doc__)
    parser.add_argument("--hogs", type=int, default=1)
    arguments = parser.parse_args()
    measured.begin(arguments)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    hogs = [pairs.Hog() for _ in range(arguments.hogs)]
    print(json.dumps({"port": server.getsockname()[1]}), flush=True)
    for _ in iter(sys.stdin.readline, ""):
        measured.print_figures(at_s=time.perf_counter(), work=sum(hog.work for hog in hogs))
    measured.leave()


if __name__ == "__main__":
    main()
