"""Plug-in detection: compares the globals of the command's own packages before and after an import.

A plug-in is a module of another package that only some runs load. It must not be imported ahead if its import
changes a module of the command (it registers itself, or replaces a function): runs without the plug-in would find
the change.
(Mercurial's ``mq`` imports ``strip``, and the other extension then counts as loaded.)

Not compared: changes that the packages named by the command make in each other, and changes in third packages;
those are mostly caches and tables that fill up.

Invariant: no code of the watched modules is called, not even ``__len__``.
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
    """Return the top-level packages of the modules a command names, without the standard library's."""
    return frozenset(map(top_of, roots)) - sys.stdlib_module_names


def is_foreign(name: str, hosts: frozenset[str]) -> bool:
    """Return whether a module may be a plug-in: neither of the command's packages nor of the standard library."""
    top = top_of(name)
    return not (top in hosts or top in _OWN or top in sys.stdlib_module_names)


class Host:
    """A snapshot of the globals of the command's own modules."""

    def __init__(self, hosts: frozenset[str]) -> None:
        self._hosts = hosts
        self._globals = {other: (dict(names), _sizes(names)) for other, names in self._modules()}

    def change(self) -> str | None:
        """Return the name of a global that was replaced or has another size since; None if there is none."""
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
            # Without __getattr__, which would load a lazy module.
            names: dict[str, Any] = object.__getattribute__(module, "__dict__")
            if isinstance(names.get("__file__"), str):
                yield other, names


def _sizes(names: dict[str, Any]) -> dict[str, int]:
    sizes = {key: _size(value) for key, value in names.items() if not key.startswith("__")}
    return {key: size for key, size in sizes.items() if size >= 0}


def _size(value: object) -> int:
    """Return the number of items of a container, without calling a method of its class; -1 for other objects."""
    for kind in _CONTAINERS:
        if issubclass(type(value), kind):
            size: int = kind.__len__(value)
            return size
    return -1
