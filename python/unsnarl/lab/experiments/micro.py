"""The primitives without contention, one operation at a time, measured by pyperf."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from unsnarl.lab.experiment import Case, Experiment, Figure, Figures
from unsnarl.lab.running.process import Run, RunFailed, execute
from unsnarl.lab.variants import AIOLOGIC, PRIMITIVES, STOCK

OPERATIONS = {
    "Lock, with": ("lock = library.Lock()", "with lock: pass"),
    "RLock, with": ("lock = library.RLock()", "with lock: pass"),
    "Condition, with and notify": ("c = library.Condition(library.Lock())", "with c: c.notify()"),
    "Semaphore, with": ("semaphore = library.Semaphore(1)", "with semaphore: pass"),
    "Event, set": ("event = library.Event()", "event.set()"),
    "Queue, put and get": ("q = queues.Queue(); put = {put}; get = {get}", "put(None); get()"),
}
LIBRARIES = {
    "stock": "import threading as library, queue as queues",
    "primitives": "import unsnarl as library; queues = library",
    "aiologic": "import aiologic as library; queues = library",
}
LACKS = {"aiologic": ("RLock, with", "Event, set")}
"""Operations that are not comparable: aiologic uses these names for other things, or its event is set once."""


def setup_of(operation: str, variant: str) -> str:
    """Return the set-up statements of a measurement."""
    kind = "green_" if variant == "aiologic" else ""
    statement = OPERATIONS[operation][0].format(put=f"q.{kind}put", get=f"q.{kind}get")
    return f"{LIBRARIES[variant]}\n{statement}"


def measure(run: Run) -> Figures:
    """Measure one operation with pyperf.

    Raises:
        RunFailed: pyperf failed.
    """
    operation, processes, values = run.case.arguments
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            *(run.python, "-m", "pyperf", "timeit", "--quiet", "-o", str(report)),
            *("--processes", processes, "--values", values, "--min-time", "0.02"),
            *("-s", setup_of(operation, run.variant.name), OPERATIONS[operation][1]),
        ]
        execute(command, run.case.confinement, run.case.limit_s)
        text = report.read_text(encoding="utf-8")
    return figures_of(text)


def figures_of(text: str) -> Figures:
    """Return the median of all values in a report of pyperf.

    Raises:
        RunFailed: the report has no values.
    """
    import statistics

    runs = json.loads(text)["benchmarks"][0]["runs"]
    values = [value for run in runs for value in run.get("values", ())]
    if not values:
        raise RunFailed("pyperf measured nothing")
    return {"time_ns": statistics.median(values) * 1e9}


def cases(processes: int, values: int, operations: tuple[str, ...]) -> tuple[Case, ...]:
    """Return one case for each operation."""
    return tuple(
        Case(
            operation,
            (operation, str(processes), str(values)),
            variants=tuple(name for name in LIBRARIES if operation not in LACKS.get(name, ())),
            expected_s=0.4 * (processes + 1) * (1 + values / 20),
        )
        for operation in operations
    )


EXPERIMENT = Experiment(
    name="micro",
    source="002, 004: the price of a primitive",
    title="Primitives without contention",
    question="What does an operation of a primitive cost while no thread waits?",
    program="",
    figures=(Figure("time_ns", "time", "ns"),),
    variants=tuple(variant._replace(needs=(*variant.needs, "pyperf")) for variant in (STOCK, PRIMITIVES, AIOLOGIC)),
    cases=cases(3, 5, tuple(OPERATIONS)),
    quick=cases(1, 2, tuple(OPERATIONS)[:1]),
    pairs=3,
    measure=measure,
    reading="Measured by pyperf, which calibrates its loops and starts its own processes.",
)
