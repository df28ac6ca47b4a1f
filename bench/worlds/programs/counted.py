"""The clock and the last line of every measured program here.

    report(operations_done_by(work))

Measured programs are plain ones: they import neither unsnarl nor anything else of this benchmark, and are run by path.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any


def report(operations: float, elapsed_s: float, **figures: float) -> None:
    """Print the figures, as the last line."""
    print(json.dumps({"operations": operations, "elapsed_s": elapsed_s, **figures}), flush=True)


def timed(work: Callable[[], Any]) -> float:
    """Return how many seconds ``work`` takes."""
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def together(functions: Sequence[Callable[[], Any]]) -> float:
    """Run each function in a thread of its own; return the seconds from the first start to the last end."""
    threads = [threading.Thread(target=function) for function in functions]

    def all_of_them() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return timed(all_of_them)
