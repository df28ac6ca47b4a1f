"""Measures servers of both variants in alternation, each under each load.

A pair is one new server process of each variant, measured one right after the other under the same
loads. The order alternates from pair to pair, so that drift of the machine affects both alike.
Invariant: one server runs at a time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from unsnarl.demo import server
from unsnarl.demo.child import Child
from unsnarl.demo.hogs import Reading, rates
from unsnarl.demo.variant import STOCK, UNSNARL
from unsnarl.errors import UnsupportedInterpreter
from unsnarl.run_settings import VARIABLE as RUN_VARIABLE

STDLIB, GUNICORN = "stdlib", "gunicorn"
COMMANDS = {
    STDLIB: ("-m", "unsnarl.demo.server"),
    GUNICORN: (
        *("-m", "gunicorn", "--config", "python:unsnarl.demo.gthread"),
        "unsnarl.demo.gthread:create_app()",
    ),
}
LOAD = Path(__file__).with_name("load.py")
TIMEOUT_S = 30.0
"""Seconds a child may be silent, in addition to the window, before it counts as hung."""


class Plan(NamedTuple):
    """The servers, loads and durations of a measurement."""

    kinds: tuple[str, ...]
    connections: tuple[int, ...]
    hogs: int
    pairs: int
    window_s: float
    warmup_s: float

    def window_count(self) -> int:
        """Return how many windows the plan has."""
        return len(self.kinds) * self.pairs * 2 * len(self.connections)


class Window(NamedTuple):
    """The figures of one load on one server; latencies in microseconds, None without answers."""

    kind: str
    variant: str
    connections: int
    pair: int
    requests_per_s: float
    p50_us: float | None
    p99_us: float | None
    work_per_s: float


class Served(Child):
    """A running server: the measured process."""

    def __init__(
        self,
        kind: str,
        variant: str,
        hogs: int,
        options: dict[str, Any] | None = None,
        python: str = sys.executable,
    ) -> None:
        """Start a server with ``hogs`` CPU-bound threads under ``python`` and receive its port.

        Raises:
            ChildError: the server did not start.
            UnsupportedInterpreter: the scheduler cannot be installed in the server.
        """
        setup = server.Setup(variant, hogs, os.getpid(), options or {})
        environment = {name: os.environ[name] for name in os.environ if name != RUN_VARIABLE}
        environment[server.VARIABLE] = json.dumps(setup._asdict())
        super().__init__(f"{kind} server", (python, "-P", *COMMANDS[kind]), environment)
        try:
            greeting: dict[str, Any] = json.loads(self.receive(TIMEOUT_S))
            if "error" in greeting:
                raise UnsupportedInterpreter(greeting["error"], greeting["hint"])
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.port = int(greeting["port"])

    def read(self) -> Reading:
        """Return the work of the CPU-bound threads so far."""
        self.send("read")
        reading = json.loads(self.receive(TIMEOUT_S))
        return Reading(reading["at_s"], tuple(reading["work"]))


def kinds_here() -> tuple[str, ...]:
    """Return the servers that are installed: the standard library's, and gunicorn with Flask if present."""
    has_gunicorn = all(find_spec(name) is not None for name in ("gunicorn", "flask"))
    return (STDLIB, GUNICORN) if has_gunicorn else (STDLIB,)


def load_once(
    served: Served, connections: int, window_s: float, warmup_s: float
) -> tuple[dict[str, float | None], list[float]]:
    """Load a server for one window; return the load's figures and each hog's work per second.

    Raises:
        ChildError: the server or the load failed.
    """
    command = [
        *(sys.executable, "-I", "-S", str(LOAD), str(served.port), "-c", str(connections)),
        *("--seconds", str(window_s), "--warmup", str(warmup_s)),
    ]
    with Child("load", command, os.environ) as load:
        load.expect("begin", warmup_s + TIMEOUT_S)
        begin = served.read()
        load.expect("end", window_s + TIMEOUT_S)
        end = served.read()
        figures: dict[str, float | None] = json.loads(load.receive(TIMEOUT_S))
    return figures, rates(begin, end)


def windows_of(plan: Plan, kind: str, variant: str, pair: int) -> Iterator[Window]:
    """Start one server and yield its windows, one for each number of connections."""
    with Served(kind, variant, plan.hogs) as served:
        for connections in plan.connections:
            figures, work = load_once(served, connections, plan.window_s, plan.warmup_s)
            yield Window(
                kind,
                variant,
                connections,
                pair,
                figures["requests_per_s"] or 0.0,
                figures["p50_us"],
                figures["p99_us"],
                sum(work),
            )


def measure(plan: Plan, on_window: Callable[[Window], None]) -> list[Window]:
    """Carry out ``plan``, calling ``on_window`` after each window; return all of them.

    Raises:
        ChildError: a server or a load failed.
        UnsupportedInterpreter: the scheduler cannot be installed here.
    """
    windows: list[Window] = []
    for pair in range(plan.pairs):
        # unsnarl first in even pairs, so that an unsupported interpreter is reported immediately.
        order = (UNSNARL, STOCK) if pair % 2 == 0 else (STOCK, UNSNARL)
        for kind in plan.kinds:
            for variant in order:
                for window in windows_of(plan, kind, variant, pair):
                    windows.append(window)
                    on_window(window)
    return windows
