"""Upload threads beside a main thread that trains: the main thread must not lose.

The main thread gives up what the uploads take, so there are two measures: uploads without an end, of which there are
more if they may run more often, and uploads of a given amount, which take the same in each way.

Reported: InternLM/InternEvo, pull request 65; pytorch/pytorch, issue 101962
Figure: steps, steps/s, more is better: what the main thread did beside uploads without an end
Figure: uploaded, MB/s, more is better: what two threads sent meanwhile
Figure: trained_ms, ms, less is better: a given number of steps beside uploads of a given amount
Figure: sent_ms, ms, less is better: these uploads
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Self

from parts import SECONDS, report

CHUNK = b"x" * 65536
UPLOADERS = 2
STEPS = int(SECONDS * 20_000)
"""The steps of the second measure: about as long as the case lasts."""
CHUNKS = int(SECONDS * 40)
"""What each thread sends in the second measure, about 5 MB a second of the case for both: a tenth of the training."""


class Uploads:
    """Threads that each send chunks to a thread that receives them, up to a number of chunks or until the end."""

    def __init__(self, chunks: int | None = None) -> None:
        self.sent = [0] * UPLOADERS
        self.ended = [0.0] * UPLOADERS
        self._chunks = chunks
        self._is_over = False
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """Start them."""
        for number in range(UPLOADERS):
            one, other = socket.socketpair()
            self._threads += [
                threading.Thread(target=self._upload, args=(number, one)),
                threading.Thread(target=self._receive, args=(other,)),
            ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let them finish the amount that they have to send, or end them if there is none."""
        self._is_over = self._chunks is None
        for thread in self._threads:
            thread.join()

    def _upload(self, number: int, out: socket.socket) -> None:
        while not self._is_over and self.sent[number] != self._chunks:
            out.sendall(CHUNK)
            self.sent[number] += 1
            time.sleep(0.001)
        self.ended[number] = time.perf_counter()
        out.close()

    def _receive(self, into: socket.socket) -> None:
        while into.recv(65536):
            pass
        into.close()


def main() -> None:
    """Train in the main thread, for a time and then a number of steps."""
    with Uploads() as uploads:
        began = time.perf_counter()
        steps, end = 0, began + SECONDS
        while time.perf_counter() < end:
            sum(range(2000))
            steps += 1
        took_s = time.perf_counter() - began
        uploaded = sum(uploads.sent) * len(CHUNK) / 1e6 / took_s
    with Uploads(CHUNKS) as uploads:
        began = time.perf_counter()
        for _ in range(STEPS):
            sum(range(2000))
        trained_s = time.perf_counter() - began
    sent_s = max(uploads.ended) - began
    report(steps=steps / took_s, uploaded=uploaded, trained_ms=trained_s * 1e3, sent_ms=sent_s * 1e3)


main()
