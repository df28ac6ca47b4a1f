"""What the programs share: CPU-bound work counted in a file, and the echo.

The standard library only, since interpreters that have no unsnarl run these programs. A program takes the file of the
counts and the number of CPU-bound ones, prints its port, and runs until its process group is killed. Invariant: each
counter has one writer, and whoever measures reads the file, so a reading asks nothing of the measured program.
"""

from __future__ import annotations

import mmap
import socket
import threading
from collections.abc import Iterator

UNIT_STEPS = 500
"""Steps of arithmetic in a unit of work: tens of microseconds in CPython."""
MESSAGE_BYTES = 2048
SLOT_BYTES = 8


def unit() -> int:
    """Do one unit of work."""
    x = 1
    for _ in range(UNIT_STEPS):
        x = (x * 31 + 7) % 1_000_003
    return x


def units(path: str, index: int) -> Iterator[int]:
    """Do units of work for ever and count them in a slot of the file; yields after each one."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        counts = memoryview(memory).cast("Q")
        done = 0
        while True:
            unit()
            done += 1
            counts[index] = done
            yield done


def compute(path: str, index: int) -> None:
    """Do units of work and never give way by oneself."""
    for _ in units(path, index):
        pass


def listening() -> socket.socket:
    """Return a UDP socket on a port that the kernel chose."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    return sock


def echo(sock: socket.socket) -> None:
    """Answer every datagram with itself."""
    while True:
        data, peer = sock.recvfrom(MESSAGE_BYTES)
        sock.sendto(data, peer)


def announce(sock: socket.socket) -> None:
    """Print the port: all work has been started."""
    print(sock.getsockname()[1], flush=True)


def serve_in_a_thread() -> None:
    """Start the echo in a thread, print its port, and wait for the end, which is a kill."""
    sock = listening()
    threading.Thread(target=echo, args=(sock,), daemon=True).start()
    announce(sock)
    threading.Event().wait()
