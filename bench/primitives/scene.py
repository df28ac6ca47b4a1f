"""A scene: one measurement with its name, unit and goal, and a function for each library.

Invariant: all libraries of a scene do the same work; a library without this feature is left out of the scene, and never
counted as slow.
"""

from __future__ import annotations

import importlib
import queue
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import unsnarl

OURS, STANDARD = "unsnarl", "standard library"
PEERS = ("aiologic", "culsans", "janus")

Run = Callable[[], float]
"""Measures once; returns the figure in the scene's unit."""


class Unit(NamedTuple):
    """The unit of a figure."""

    name: str
    more_is_better: bool = False


NANOSECONDS = Unit("ns")
RATE = Unit("/s", more_is_better=True)
CALLS = Unit("futex calls per round trip")
BYTES = Unit("bytes")
MILLISECONDS = Unit("ms")
EXPONENT = Unit("growth exponent")


class Scene(NamedTuple):
    """One measurement, the libraries it covers, and its goal."""

    name: str
    unit: Unit
    runs: dict[str, Run]
    goal: float | None = None
    """Factor by which to beat the best of `against`; None where only the figure counts."""
    against: tuple[str, ...] = (STANDARD,)
    ceiling: float | None = None
    """Upper bound of unsnarl's figure."""


def libraries() -> dict[str, Any]:
    """Return each library that is installed, as a namespace of its classes."""
    standard = SimpleNamespace(**{name: getattr(threading, name) for name in threading.__all__})
    for name in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"):
        setattr(standard, name, getattr(queue, name))
    found: dict[str, Any] = {STANDARD: standard, OURS: unsnarl}
    for name in PEERS:
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found
