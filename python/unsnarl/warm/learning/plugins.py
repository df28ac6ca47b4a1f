"""Tell a plug-in by what its import does to the command's own packages.

A module of another package that only some runs load must not be imported ahead if its
import changes a module of the command's: it registers itself, or replaces something, and
runs that have not asked for it would find the change. (Mercurial's ``mq`` loads ``strip``
while it is imported, and the other extension then counts as loaded.) What the packages
the command itself names change in each other is not looked at, nor what is changed in
third ones: caches and tables that fill up, mostly.

Invariant: nothing of the watched modules is called, not even ``__len__``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_CONTAINERS: tuple[Any, ...] = (dict, list, set)
_OWN = ("unsnarl", "_unsnarl_warm", "__main__", "__mp_main__")


def top_of(name: str) -> str:
    """Return the top-level package of a module."""
    return name.partition(".")[0]


def hosts_of(roots: list[str]) -> frozenset[str]:
    """Return the top-level packages of the modules a command names, but for the standard library's."""
    return frozenset(map(top_of, roots)) - sys.stdlib_module_names


def is_foreign(name: str, hosts: frozenset[str]) -> bool:
    """Say whether a module may be a plug-in: neither of the command's packages nor of the standard library."""
    top = top_of(name)
    return not (top in hosts or top in _OWN or top in sys.stdlib_module_names)


class Host:
    """Hold the globals of the command's own modules as they are."""

    def __init__(self, hosts: frozenset[str]) -> None:
        self._hosts = hosts
        self._globals = {other: (dict(names), _sizes(names)) for other, names in self._modules()}

    def change(self) -> str | None:
        """Return the name of a global that is another one by now, or holds more or less; None if there is none."""
        for other, names in self._modules():
            values, sizes = self._globals.get(other, (names, {}))
            for key, value in names.items():
                if key == "__warningregistry__" or (key not in values and type(value) is type(sys)):
                    continue
                if values.get(key, sizes) is not value:
                    return f"{other}.{key}"
            for key, size in sizes.items():
                if key in names and _size(names[key]) != size:
                    return f"{other}.{key}"
        return None

    def _modules(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for other, module in list(sys.modules.items()):
            if top_of(other) not in self._hosts:
                continue
            # Past __getattr__: a module still waiting to be loaded on first touch must not be touched.
            names: dict[str, Any] = object.__getattribute__(module, "__dict__")
            if isinstance(names.get("__file__"), str):
                yield other, names


def _sizes(names: dict[str, Any]) -> dict[str, int]:
    sizes = {key: _size(value) for key, value in names.items() if not key.startswith("__")}
    return {key: size for key, size in sizes.items() if size >= 0}


def _size(value: object) -> int:
    """Return the number of items of a container, past any method of its own; -1 for anything else."""
    for kind in _CONTAINERS:
        if issubclass(type(value), kind):
            size: int = kind.__len__(value)
            return size
    return -1
