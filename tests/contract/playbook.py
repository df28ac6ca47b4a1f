"""The list of scenarios, and the functions that most of them use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import unsnarl

SCENARIOS: list[Any] = []
"""Functions of a world: coroutines whose names begin with async_, and plain ones."""


def scenario(function: Any) -> Any:
    """Register the scenario for every world that it suits."""
    SCENARIOS.append(function)
    return function


LOCKS: list[Callable[[], Any]] = [
    unsnarl.Lock,
    unsnarl.RLock,
    unsnarl.Semaphore,
    unsnarl.BoundedSemaphore,
    unsnarl.CapacityLimiter,
]
LOCKS_AND_SIDES: list[Callable[[], Any]] = [*LOCKS, lambda: unsnarl.RWLock().writer]
