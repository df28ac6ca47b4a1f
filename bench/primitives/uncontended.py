"""Uncontended primitives, in nanoseconds of processor time per operation, which other load changes little.

Invariant: a figure is the best of a few short rounds of one statement in a loop of
`timeit`, or of one coroutine; all libraries run in the same process.
"""

from __future__ import annotations

import asyncio
import sys
import time
import timeit
from types import SimpleNamespace
from typing import Any

from bench.primitives.scene import NANOSECONDS, STANDARD, Run, Scene, libraries
from unsnarl.interpreter import is_cpython

ROUND_S = 0.01
ROUNDS = 3
SAMPLE = 500 if is_cpython() else 20_000
"""Turns of a loop that say how many fill a round. A JIT compiles the loop during the first few thousand."""
AWAITS = 3000 if is_cpython() else 30_000

NATIVE_ALREADY = 1.0 if sys.version_info < (3, 14) else 1 / 1.1
"""Goal for classes that the standard library has in C: faster up to 3.13, as fast within a tenth since."""

STATEMENTS: dict[str, tuple[str, str, float]] = {
    "Lock with": ("Lock()", "with x: pass", NATIVE_ALREADY),
    "RLock with": ("RLock()", "with x: pass", NATIVE_ALREADY),
    "SimpleQueue put+get": ("SimpleQueue()", "x.put(1); x.get()", NATIVE_ALREADY),
    "Condition with+notify": ("Condition()", "with x: x.notify()", 2),
    "Semaphore with": ("Semaphore(1)", "with x: pass", 5),
    "BoundedSemaphore with": ("BoundedSemaphore(1)", "with x: pass", 5),
    "Event set+clear": ("Event()", "x.set(); x.clear()", 5),
    "Barrier(1) wait": ("Barrier(1)", "x.wait()", 5),
    "Queue put+get": ("Queue()", "x.put(1); x.get()", 5),
    "LifoQueue put+get": ("LifoQueue()", "x.put(1); x.get()", 5),
    "PriorityQueue put+get": ("PriorityQueue()", "x.put(1); x.get()", 5),
}

ASYNC_STATEMENTS: dict[str, tuple[str, str, str]] = {
    "async with Lock": ("Lock()", "async with x: pass", "async with x: pass"),
    "async with Semaphore": ("Semaphore(1)", "async with x: pass", "async with x: pass"),
    "async Queue put+get": (
        "Queue()",
        "await x.put(1); await x.get()",
        "await x.async_put(1); await x.async_get()",
    ),
    "await set Event": ("Event()", "x.set(); await x.wait(); x.clear()", "x.set(); await x; x.clear()"),
}


def scenes() -> list[Scene]:
    """Return every scene of this kind."""
    return [*_synchronous(), *_asynchronous()]


def _synchronous() -> list[Scene]:
    found = libraries()
    return [
        Scene(label, NANOSECONDS, _usable({name: _statement(found[name], *what[:2]) for name in found}), what[2])
        for label, what in STATEMENTS.items()
    ]


def _asynchronous() -> list[Scene]:
    found = libraries() | {STANDARD: asyncio}
    return [
        Scene(
            label,
            NANOSECONDS,
            _usable({name: _coroutine(found[name], make, theirs if name == STANDARD else ours) for name in found}),
            1.5,
        )
        for label, (make, theirs, ours) in ASYNC_STATEMENTS.items()
    ]


def _usable(runs: dict[str, Run]) -> dict[str, Run]:
    """Leave out libraries that lack the class, or have a different one by its name."""
    usable: dict[str, Run] = {}
    for name, run in runs.items():
        try:
            run()
        except (AttributeError, LookupError, NameError, RuntimeError, TypeError):
            continue
        usable[name] = run
    return usable


def _make(library: Any, expression: str) -> Any:
    name = expression.partition("(")[0]
    thing = eval(expression, {name: getattr(library, name)})
    if hasattr(thing, "sync_q"):  # culsans and janus: one queue, two views
        return SimpleNamespace(
            put=thing.sync_q.put,
            get=thing.sync_q.get,
            async_put=thing.async_q.put,
            async_get=thing.async_q.get,
        )
    return thing


def _statement(library: Any, expression: str, statement: str) -> Run:
    def run() -> float:
        x = _make(library, expression)
        translated = statement
        if type(x).__module__.startswith("aiologic"):
            for name in ("put", "get", "wait"):
                translated = translated.replace(f"x.{name}(", f"x.green_{name}(")
        # A local name: a global one of a dictionary costs PyPy more than the whole `with` of a lock.
        timer = timeit.Timer(translated, setup="x = made", timer=time.process_time, globals={"made": x})
        if not is_cpython():
            timer.timeit(SAMPLE)
        number = max(1, int(ROUND_S / (timer.timeit(SAMPLE) / SAMPLE)))
        return min(timer.repeat(ROUNDS, number)) / number * 1e9

    return run


def _coroutine(library: Any, expression: str, statement: str) -> Run:
    source = f"async def run(x, n):\n    for _ in range(n):\n        {statement.replace('; ', chr(10) + ' ' * 8)}\n"
    names: dict[str, Any] = {}
    exec(source, names)

    async def measure() -> float:
        x = _make(library, expression)
        times: list[float] = []
        for _ in range(ROUNDS):
            start = time.process_time()
            await names["run"](x, AWAITS)
            times.append(time.process_time() - start)
        return min(times) / AWAITS * 1e9

    return lambda: asyncio.run(measure())
