"""Time primitives that nobody contends for: ours, the standard library's, the peers'.

    python bench/sync_uncontended.py [-o RESULTS.json]

Prints a table of nanoseconds per operation, the best of several rounds whose
order alternates, and the standard library's time over ours. Peers that are not
installed are left out. Invariant: all variants of an operation run the same
statement in the same process.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import platform
import queue
import sys
import threading
import time
import timeit
from collections.abc import Callable
from typing import Any

import unsnarl

ROUNDS = 7
ROUND_S = 0.02

STATEMENTS: dict[str, tuple[str, str]] = {
    "Lock with": ("Lock()", "with x: pass"),
    "RLock with": ("RLock()", "with x: pass"),
    "Condition with+notify": ("Condition()", "with x: x.notify()"),
    "Semaphore with": ("Semaphore(1)", "with x: pass"),
    "BoundedSemaphore with": ("BoundedSemaphore(1)", "with x: pass"),
    "Event set+clear": ("Event()", "x.set(); x.clear()"),
    "Barrier(1) wait": ("Barrier(1)", "x.wait()"),
    "Queue put+get": ("Queue()", "x.put(1); x.get()"),
    "LifoQueue put+get": ("LifoQueue()", "x.put(1); x.get()"),
    "PriorityQueue put+get": ("PriorityQueue()", "x.put(1); x.get()"),
    "SimpleQueue put+get": ("SimpleQueue()", "x.put(1); x.get()"),
}


class _Library:
    """The names of a library's classes, wherever they are."""

    def __init__(self, *modules: Any) -> None:
        self._modules = modules

    def make(self, expression: str) -> Any:
        name = expression.partition("(")[0]
        for module in self._modules:
            if hasattr(module, name):
                return eval(expression, {name: getattr(module, name)})
        raise LookupError(name)


def _libraries() -> dict[str, _Library]:
    found = {"standard library": _Library(threading, queue), "unsnarl": _Library(unsnarl)}
    for name in ("aiologic",):
        try:
            found[name] = _Library(importlib.import_module(name))
        except ImportError:
            print(f"{name} is not installed: left out", file=sys.stderr)
    return found


def _time(statement: str, x: Any) -> Callable[[], float]:
    timer = timeit.Timer(statement, globals={"x": x})
    number = max(1, int(ROUND_S / (timer.timeit(2000) / 2000)))
    return lambda: timer.timeit(number) / number * 1e9


def _best(rounds: dict[str, Callable[[], float]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for turn in range(ROUNDS):
        for name in sorted(rounds, reverse=bool(turn % 2)):
            elapsed_ns = rounds[name]()
            best[name] = min(best.get(name, elapsed_ns), elapsed_ns)
    return best


def _synchronous() -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    for label, (expression, statement) in STATEMENTS.items():
        rounds: dict[str, Callable[[], float]] = {}
        for name, library in _libraries().items():
            try:
                x = library.make(expression)
                exec(statement, {"x": x})
                rounds[name] = _time(_translate(statement, x), x)
            except (AttributeError, LookupError, TypeError):
                continue
        results[label] = _best(rounds)
    return results


def _translate(statement: str, x: Any) -> str:
    if type(x).__module__.startswith("aiologic"):
        for name in ("put", "get", "wait"):
            statement = statement.replace(f"x.{name}(", f"x.green_{name}(")
    return statement


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


def _asynchronous() -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    peers = _libraries()
    peers["standard library"] = _Library(asyncio)
    for label, (expression, theirs, ours) in ASYNC_STATEMENTS.items():
        rounds: dict[str, Callable[[], float]] = {}
        for name, library in peers.items():
            statement = theirs if name == "standard library" else ours
            round_ = _async_round(library, expression, statement)
            try:
                round_()
            except (AttributeError, LookupError, TypeError):
                continue  # the library has no such method
            rounds[name] = round_
        results[label] = _best(rounds)
    return results


def _async_round(library: _Library, expression: str, statement: str) -> Callable[[], float]:
    source = f"async def run(x, n):\n    for _ in range(n):\n        {statement.replace('; ', chr(10) + ' ' * 8)}\n"
    names: dict[str, Any] = {}
    exec(source, names)

    async def measure() -> float:
        x = library.make(expression)
        number = 5000
        start = time.perf_counter()
        await names["run"](x, number)
        return (time.perf_counter() - start) / number * 1e9

    return lambda: asyncio.run(measure())


def render(results: dict[str, dict[str, float]]) -> str:
    """Return the results as a Markdown table."""
    names = ["standard library", "unsnarl", "aiologic"]
    lines = ["| operation, ns | " + " | ".join(names) + " | standard / unsnarl |", "|---" * 5 + "|"]
    for label, best in results.items():
        cells = [f"{best[name]:.0f}" if name in best else "–" for name in names]
        ratio = best["standard library"] / best["unsnarl"]
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    arguments = parser.parse_args()
    results = _synchronous() | _asynchronous()
    print(f"CPython {platform.python_version()}, {platform.machine()}\n\n{render(results)}")
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump({"python": platform.python_version(), "ns": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
