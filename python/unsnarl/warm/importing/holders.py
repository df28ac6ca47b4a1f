"""Search the heap for all that holds a text.

Invariant: what Python's collector can reach is looked into; nothing of the watched modules is called.

Does not work: ``gc.get_referrers(text)``, for what is made of the text does not refer to it, and
dictionaries and tuples of texts alone are not tracked. Nor does a search with a generator expression:
the cell of what it looks for is found.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# Include/object.h: the type takes part in garbage collection.
_HAVE_GC = 1 << 14
_CodeType = type(compile("", "", "exec"))


def modules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the loaded modules' names and globals, but for unsnarl's own."""
    for name, module in list(sys.modules.items()):
        names: Any = getattr(module, "__dict__", None)
        if type(names) is dict and not name.startswith("_unsnarl_warm"):
            yield name, names


def find(path: str, is_fit: Callable[[Any], bool], ours: tuple[type, ...]) -> tuple[list[tuple[str, str]], bool]:
    """Return the globals that are a path and fit, as ``(module, name)``, and whether anything else has its last name.

    Objects of the types ``ours`` are passed over.
    """
    needle = os.path.basename(path)
    known_modules = {id(names): (name, names) for name, names in modules()}
    places: list[tuple[str, str]] = []
    things: list[Any] = gc.get_objects()
    for thing in things:
        if type(thing) in ours or thing is known_modules:
            continue
        others = 0
        if id(thing) in known_modules:
            name, names = known_modules[id(thing)]
            for key, value in list(names.items()):
                if issubclass(type(value), str) and str.__eq__(value, path) and is_fit(value):
                    places.append((name, key))
                    others -= 1
        for text in _texts(thing):
            others += _is_named(text, needle)
        if others > 0:
            return places, True
    return sorted(places), False


def _texts(thing: Any, depth: int = 4) -> Iterator[Any]:
    """Yield the texts that something refers to, and those in containers of texts, which are not tracked."""
    held: list[Any] = gc.get_referents(thing)
    if issubclass(type(thing), dict):
        names: dict[Any, Any] = thing
        # Texts alone are not among its referents.
        held += dict.keys(names)  # pyright: ignore[reportUnknownMemberType]
    for one in held:
        kind = _kind(one)
        if issubclass(kind, (str, bytes, bytearray)):
            yield one
        elif kind is _CodeType:
            yield from (constant for constant in one.co_consts if type(constant) in (str, bytes))
        elif depth and kind.__flags__ & _HAVE_GC and not gc.is_tracked(one):
            yield from _texts(one, depth - 1)


def _kind(thing: object) -> type[object]:
    return type(thing)


def _is_named(text: Any, needle: str) -> bool:
    kind = _kind(text)
    if issubclass(kind, str):
        return str.__contains__(text, needle)
    plain = bytearray if issubclass(kind, bytearray) else bytes
    return plain.__contains__(text, os.fsencode(needle))
