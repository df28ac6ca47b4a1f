"""A heartbeat thread beside threads that compute.

Reported: dpkp/kafka-python, issue 1672; PrefectHQ/prefect, pull request 21276
Figure: late_max_ms, ms, less is better: how late the latest heartbeat was
Figure: work, rounds/s, more is better: what the computing threads did
"""

from __future__ import annotations

import socket
import threading
import time

from parts import SECONDS, Spinners, report

EVERY_S = 0.02


def main() -> None:
    """Send a heartbeat through a socket, and compute beside it."""
    late: list[float] = []
    mine, theirs = socket.socketpair()

    def beat() -> None:
        due = time.perf_counter()
        end = due + SECONDS
        while due < end:
            due += EVERY_S
            time.sleep(max(0.0, due - time.perf_counter()))
            mine.send(b"beat")
            late.append((time.perf_counter() - due) * 1e3)

    with Spinners(4) as spinners:
        thread = threading.Thread(target=beat)
        thread.start()
        thread.join()
        work = spinners.work
    mine.close()
    theirs.close()
    report(late_max_ms=max(late), work=work)


main()
