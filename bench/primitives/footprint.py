"""Memory per object, and the time that `import unsnarl` adds to the start of an interpreter.

Memory is the growth of the process by many objects, divided by their number. It includes the dictionaries, locks and
lists of an object, and memory that Python does not account for. Invariant: each figure is from a separate process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

from bench.machine import ROOT
from bench.primitives.scene import BYTES, MILLISECONDS, OURS, STANDARD, Scene

OBJECTS = 20_000
STARTS = 15

GROWTH = """
import gc, sys
module = __import__(sys.argv[1])
make, number = eval("lambda: module." + sys.argv[2]), int(sys.argv[3])
def resident():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_Dirty:"))
gc.disable()
warm = [make() for _ in range(1000)]
kept = [None] * number
before = resident()
for index in range(number):
    kept[index] = make()
print((resident() - before) / number)
"""

CLASSES = {
    "Lock()": "threading",
    "RLock()": "threading",
    "Condition()": "threading",
    "Semaphore()": "threading",
    "Event()": "threading",
    "Barrier(2)": "threading",
    "Queue()": "queue",
    "PriorityQueue()": "queue",
    "SimpleQueue()": "queue",
}


def bytes_each(module: str, expression: str) -> float:
    """Return what one more object takes."""
    command = [sys.executable, "-c", GROWTH, module, expression, str(OBJECTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return float(done.stdout)


def start_ms(statement: str) -> float:
    """Return the shortest of several starts of an interpreter that runs a statement, above one that runs none."""
    times: dict[str, list[float]] = {statement: [], "pass": []}
    for _ in range(STARTS):
        for each, taken in times.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-P", "-c", each], check=True)
            taken.append(time.perf_counter() - began)
    return (min(times[statement]) - min(times["pass"])) * 1e3


def scenes() -> list[Scene]:
    """Return every scene of this kind."""
    memory = [
        Scene(
            f"memory: {expression}",
            BYTES,
            {STANDARD: partial(bytes_each, module, expression), OURS: partial(bytes_each, "unsnarl", expression)},
            goal=1.0,
        )
        for expression, module in CLASSES.items()
    ]
    starts = [
        Scene("import unsnarl", MILLISECONDS, {OURS: partial(start_ms, "import unsnarl")}, ceiling=5),
        Scene(
            "first use of a primitive",
            MILLISECONDS,
            {
                OURS: partial(start_ms, "import unsnarl; unsnarl.Lock"),
                STANDARD: partial(start_ms, "import threading, queue"),
                "aiologic": partial(start_ms, "import aiologic"),
            },
        ),
    ]
    return [*memory, *starts]
