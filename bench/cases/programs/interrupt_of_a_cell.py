"""An interrupt of a computing main thread, beside other threads that compute, as a notebook's stop button.

Reported: jupyter-server/enterprise_gateway, issue 682
Figure: interrupted_max_ms, ms, less is better: from the signal to `KeyboardInterrupt`
"""

from __future__ import annotations

import os
import signal
import time

from parts import SECONDS, Spinners, report

GIVE_UP_S = 30.0


def interrupted_after() -> float:
    """Return the milliseconds from an interrupt to its exception."""
    began = time.perf_counter()
    try:
        os.kill(os.getpid(), signal.SIGINT)
        while time.perf_counter() < began + GIVE_UP_S:
            sum(range(200))
    except KeyboardInterrupt:
        pass
    return (time.perf_counter() - began) * 1e3


with Spinners(4):
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        times.append(interrupted_after())
        time.sleep(0.01)
report(interrupted_max_ms=max(times))
