"""An engine whose steps alternate between Python and native code, beside a thread that answers requests.

Reported: vllm-project/vllm, issue 8033
Figure: answer_p99_ms, ms, less is better: the time of a request
Figure: steps, steps/s, more is better: what the engine did
"""

from __future__ import annotations

import hashlib
import socket
import threading
import time

from parts import SECONDS, compute, percentile, report

BLOCK = bytes(2_000_000)


is_over = threading.Event()
steps = [0, 0]


def engine(number: int) -> None:
    """Step until the end."""
    while not is_over.is_set():
        compute(0.004)
        hashlib.sha256(BLOCK).digest()  # releases the GIL, as a kernel launch does
        steps[number] += 1


def serve(connection: socket.socket) -> None:
    """Answer each request."""
    while request := connection.recv(64):
        connection.sendall(request)


def ask(connection: socket.socket) -> list[float]:
    """Return the milliseconds of each request."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        began = time.perf_counter()
        connection.sendall(b"request")
        connection.recv(64)
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.001)
    return times


def main() -> None:
    """Send requests through a socket to a thread, beside the engine."""
    mine, theirs = socket.socketpair()
    threads = [threading.Thread(target=engine, args=(number,)) for number in range(2)]
    threads.append(threading.Thread(target=serve, args=(theirs,)))
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    times = ask(mine)
    done = sum(steps) / (time.perf_counter() - began)
    is_over.set()
    mine.close()
    for thread in threads:
        thread.join()
    theirs.close()
    report(answer_p99_ms=percentile(times, 0.99), steps=done)


main()
