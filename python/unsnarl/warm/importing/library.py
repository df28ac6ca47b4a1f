"""The functions of the standard library, which a program may replace: a module that was imported before keeps the old.

Invariant: no code of the modules is called.
"""

from __future__ import annotations

import sys

from . import holders

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Functions = dict[str, dict[str, Any]]


def functions() -> Functions:
    """Return the callables of each loaded module of the standard library."""
    return {
        name: {key: value for key, value in names.items() if key[:2] != "__" and callable(value)}
        for name, names in holders.modules()
        if name.partition(".")[0] in sys.stdlib_module_names
    }


def replaced(before: Functions) -> list[str]:
    """Return those, as ``MODULE.NAME``, in whose place something else is now."""
    there = {name: holders.namespace(sys.modules[name]) for name in before if name in sys.modules}
    pairs = ((name, key) for name in there for key in before[name])
    return [f"{name}.{key}" for name, key in pairs if there[name].get(key) is not before[name][key]]


def kept(modules: Iterable[str]) -> dict[str, set[str]]:
    """Return the functions that these modules have among their globals, and of each the modules that have it."""
    names: dict[int, list[tuple[str, str]]] = {}
    for module, found in functions().items():
        for key, value in found.items():
            names.setdefault(id(value), []).append((module, f"{module}.{key}"))
    keepers: dict[str, set[str]] = {}
    for keeper in modules:
        globals_ = holders.namespace(sys.modules.get(keeper))
        for value in [value for key, value in globals_.items() if key[:2] != "__"]:
            for module, name in names.get(id(value), ()):
                if module != keeper:
                    keepers.setdefault(name, set()).add(keeper)
    return keepers
