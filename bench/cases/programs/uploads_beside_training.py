"""Upload threads beside a main thread that trains: the main thread must not lose.

Reported: InternLM/InternEvo, pull request 65; pytorch/pytorch, issue 101962
Figure: steps, steps/s, more is better: what the main thread did
Figure: uploaded, MB/s, more is better: what two threads sent meanwhile
"""

from __future__ import annotations

import socket
import threading
import time

from parts import SECONDS, report

CHUNK = b"x" * 65536


is_over = threading.Event()
sent = [0, 0]


def upload(number: int, out: socket.socket) -> None:
    """Send chunks until the end."""
    while not is_over.is_set():
        out.sendall(CHUNK)
        sent[number] += len(CHUNK)
        time.sleep(0.001)
    out.close()


def receive(into: socket.socket) -> None:
    """Receive until the other side has closed."""
    while into.recv(65536):
        pass
    into.close()


def main() -> None:
    """Train in the main thread; two threads each send chunks to a thread that receives them."""
    threads: list[threading.Thread] = []
    for number in range(2):
        one, other = socket.socketpair()
        threads += [
            threading.Thread(target=upload, args=(number, one)),
            threading.Thread(target=receive, args=(other,)),
        ]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    steps, end = 0, began + SECONDS
    while time.perf_counter() < end:
        sum(range(2000))
        steps += 1
    took_s = time.perf_counter() - began
    uploaded = sum(sent) / 1e6 / took_s
    is_over.set()
    for thread in threads:
        thread.join()
    report(steps=steps / took_s, uploaded=uploaded)


main()
