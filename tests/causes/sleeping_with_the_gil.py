"""C code that blocks and keeps the GIL: it lacks no processor, and no scheduler can end its hold."""
# finding: long-hold, line CALL, remedy none
# not: no-processor

import ctypes
import threading
import time

keeping = ctypes.PyDLL(None)  # its functions are called with the GIL
is_over = threading.Event()


def tick() -> None:
    while not is_over.is_set():
        time.sleep(0.001)


def compute(until_s: float) -> None:
    while time.perf_counter() < until_s:
        sum(range(1000))


ticker = threading.Thread(target=tick, name="ticker")
ticker.start()
for _ in range(10):
    compute(time.perf_counter() + 0.02)
    keeping.usleep(60_000)  # CALL
is_over.set()
ticker.join()
