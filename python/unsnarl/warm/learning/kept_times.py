"""Times that imports keep: globals that a worker can set again, and whatever else holds a time, which rules it out.

Invariant: a time that is found has a renewal, or a reason to run plainly.
"""

from __future__ import annotations

import sys

from ..importing import holders, values
from ..renewals import CLOCKS, TIME, Recipe, Renewal

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

    from .watch import Watch


def find(watch: Watch, start: dict[Recipe, Any], modules: list[str]) -> list[Renewal]:
    """Find the globals that hold the time of their import."""
    windows = {clock: (low, clock.value()) for clock, low in start.items()}
    found: list[Renewal] = []
    for name in modules:
        for key, value in list(holders.namespace(sys.modules.get(name)).items()):
            if type(value) in (int, float):
                fit = [one for one, (low, high) in windows.items() if type(value) is type(low) and low <= value <= high]
                found += [Renewal(name, key, one) for one in fit[:1]]
            elif values.is_today(value):
                watch.fatal.append((watch.owners.get(name, ""), f"{name}.{key} keeps the date of its import"))
    known = {(one.module, one.name) for one in found}
    named = [place for place in values.Moment(start[TIME]).find(modules) if place not in known]
    for name, key in named:
        watch.fatal.append((watch.owners.get(name, ""), f"{name}.{key} is made of the time of its import"))
    if not named:
        _judge_holders_of_times(watch, start, windows)
    return found


def _judge_holders_of_times(watch: Watch, start: dict[Recipe, Any], windows: dict[Recipe, tuple[Any, Any]]) -> None:
    """Look for times in whatever else the imports have made."""
    moments = [*windows.values(), (int(windows[TIME][0]), int(windows[TIME][1]))]
    if place := holders.of_moment(moments, [start, windows, *windows.values(), moments, *moments]):
        watch.fatal.append((_owner(watch, place), f"{place} keeps the time of its import"))


def _owner(watch: Watch, place: str) -> str:
    """Return the requested module that has loaded the one of a place, as ``MODULE.NAME``; nothing if it has no name."""
    module = place
    while "." in module and module not in watch.owners:
        module = module.rpartition(".")[0]
    return watch.owners.get(module, "")


def now() -> dict[Recipe, Any]:
    """Return what each clock shows."""
    return {clock: clock.value() for clock in CLOCKS}
