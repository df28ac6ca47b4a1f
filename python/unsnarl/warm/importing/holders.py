"""Heap search: finds every object that holds a text, and which globals are exactly that text.

Invariant: the search covers all objects that the garbage collector can reach, and calls no code of the modules
it searches.

Things that do not work:

- ``gc.get_referrers(text)``: what was derived from the text does not refer to it, and dictionaries and tuples that
  hold only texts are not tracked;
- a generator expression or a comprehension (before 3.12) in the search: it finds the cell that holds its own needle.
"""

from __future__ import annotations

import gc
import os
import sys
import time

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from functools import _lru_cache_wrapper, partial  # pyright: ignore[reportPrivateUsage]
    from typing import Any
else:
    from _functools import _lru_cache_wrapper, partial

# Include/object.h: the type takes part in garbage collection.
_HAVE_GC = 1 << 14
# The type is made while the program runs, by a class statement or by a C module.
_OF_HEAP = 1 << 9
# What C code of a type is called by, in the type's dictionary.
_OF_C: Any = (type(object.__init__), type(str.join), type(dict.__dict__["fromkeys"]))
_CodeType = type(compile("", "", "exec"))


# Names of types that hold a day; `datetime` may be in C or in Python.
_DATED = ("struct_time", "datetime")
_IMPORTERS = ("_frozen_importlib_external", "importlib._bootstrap_external")


def _closing_over(held: object) -> object:
    """Return a function with a cell: the module `types` need not be loaded for these kinds."""
    return lambda: held


_Function: Any = _closing_over(None)
_KEEPING: Any = (dict, list, tuple, partial, type(_Function), type(_Function.__closure__[0]), _lru_cache_wrapper)


def modules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and globals of the loaded modules, without unsnarl's own."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("_unsnarl_warm") and (names := namespace(module)):
            yield name, names


def namespace(module: object) -> dict[str, Any]:
    """Return the globals of a module, nothing for an object in its place that has none; calls no code of either."""
    try:
        names: Any = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names if type(names) is dict else {}  # pyright: ignore[reportUnknownVariableType]


def of_moment(windows: list[tuple[Any, Any]], ours: list[object]) -> str:
    """Return what holds a time within one of these windows, by its place or its kind; nothing if there is none.

    Numbers in globals do not count: they have recipes, or are judged by themselves. Objects in ``ours`` are skipped. A
    clock's float has more than three decimals, which distinguishes it from a constant.
    """
    days = {each(at)[:3] for each in (time.localtime, time.gmtime) for at in windows[0]}
    names_of_modules = {id(names) for _, names in modules()}
    things: list[Any] = gc.get_objects()
    skipped, seen = {id(things), *map(id, ours)}, set[int]()
    while things:
        deeper: list[Any] = []
        for thing in things:
            held = gc.get_referents(thing) if id(thing) not in skipped and not _is_finder(thing) else []
            is_global = id(thing) in names_of_modules
            for one in held:
                kind = _kind(one)
                if kind is int or kind is float:
                    is_found = not is_global and _is_within(one, windows)
                else:
                    is_found = kind.__name__ in _DATED and _is_of_day(one, days)
                if is_found:
                    return _place_of(thing, one) or _some(type(thing).__name__)
            # An object that holds only texts and numbers is not tracked; it is reached through its holders.
            deeper += [one for one in held if type(one) in (dict, tuple) and not gc.is_tracked(one)]
        things = _new(deeper, skipped, seen)
    return ""


def _is_finder(thing: object) -> bool:
    """Return whether this is an importer of a directory: it keeps when its directory has changed, which may be now."""
    kind = _kind(thing)
    return kind.__name__ == "FileFinder" and kind.__module__ in _IMPORTERS


def of_number(number: int) -> dict[str, int]:
    """Return the places that hold a number, each with how many do: containers, closures, caches, default arguments.

    Globals and attributes of classes do not count: they are compared by themselves. Nor does what only instances hold:
    they keep the number of a process to notice a fork, as ``tempfile`` does.
    """
    found: dict[str, int] = {}
    names_of_modules = {id(namespace(module)) for module in list(sys.modules.values())}
    things: list[Any] = gc.get_objects()
    above: list[Any] = []
    skipped, seen = {id(things), id(names_of_modules)}, set[int]()
    while things:
        deeper: list[Any] = []
        ours = {id(things), id(above), id(deeper)}
        for thing in things:
            if id(thing) in skipped:
                continue
            held = gc.get_referents(thing)
            deeper += [one for one in held if type(one) in (dict, tuple) and not gc.is_tracked(one)]
            if _kind(thing) not in _KEEPING or id(thing) in names_of_modules:
                continue
            if _holds(held, number) and not _is_of_instances(thing, above, ours):
                place = _place_of(thing, number) or _some(type(thing).__name__)
                found[place] = found.get(place, 0) + 1
        above, things = things, _new(deeper, skipped, seen)
    return found


def _new(things: list[Any], skipped: set[int], seen: set[int]) -> list[Any]:
    """Return each of these things that was not looked at yet, once."""
    found = {id(thing): thing for thing in things}
    new = [each for each in found if each not in skipped and each not in seen]
    seen.update(new)
    return [found[each] for each in new]


def _holds(things: list[Any], number: int) -> bool:
    for one in things:  # noqa: SIM110 - a generator would be a cell that holds the number
        if type(one) is int and one == number:
            return True
    return False


def _holders(thing: object, above: list[Any], ours: set[int]) -> list[Any]:
    """Return what refers to an object, without the lists of this search; ``above`` may refer to an untracked one."""
    found = [one for one in gc.get_referrers(thing) if id(one) not in ours]
    for holder in above if not gc.is_tracked(thing) else ():
        if not gc.is_tracked(holder):
            for one in gc.get_referents(holder):  # a comprehension would be a cell that holds the object
                found += [holder] if one is thing else []
    return found


def _is_of_instances(thing: Any, above: list[Any], ours: set[int]) -> bool:
    """Return whether only instances hold this: it is their attributes, or a tuple that is one of them."""
    is_tuple = _kind(thing) is tuple
    if not is_tuple and _kind(thing) is not dict:
        return False
    found = _holders(thing, above, ours)
    inner = ours | {id(found)}
    for one in found:
        if is_tuple and _kind(one) is dict:
            if not _is_of_instances(one, above, inner):
                return False
        elif not _is_of_python(_kind(one)) or not (is_tuple or _kind(one).__dictoffset__):
            return False
    return bool(found)


def _is_of_python(kind: type) -> bool:
    """Return whether a class, and no metaclass, is made by Python code; its instances have a dictionary or slots."""
    if not kind.__flags__ & _OF_HEAP or issubclass(kind, type):
        return False
    names: dict[str, Any] = type.__dict__["__dict__"].__get__(kind)
    for value in names.values():
        if _kind(value) in _OF_C and value.__objclass__ is kind:
            return False
    bases = [type.__dict__["__dict__"].__get__(one) for one in type.__dict__["__mro__"].__get__(kind)]
    return any(name in base for base in bases for name in ("__dict__", "__weakref__", "__slots__"))


def _place_of(holder: object, held: object) -> str:
    """Return the name of a global, or of an attribute of a class that is one; nothing for other places."""
    for name, names in modules():
        for key, value in list(names.items()):
            if value is holder or (names is holder and value is held):
                return f"{name}.{key}"
            if issubclass(_kind(value), type) and any(one is holder for one in gc.get_referents(value)):
                keys = [
                    each
                    for each, attribute in list(type.__dict__["__dict__"].__get__(value).items())
                    if attribute is held
                ]
                return ".".join([name, key, *keys[:1]])
    return ""


def _some(kind: str) -> str:
    kind = "cache" if kind == _lru_cache_wrapper.__name__ else kind
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind} that it makes while it is imported"


def _is_of_day(thing: Any, days: set[tuple[Any, ...]]) -> bool:
    kind = _kind(thing)
    if kind is time.struct_time:
        return thing[:3] in days
    is_date = kind.__name__ == "datetime" and kind.__module__ == "datetime"
    return is_date and (thing.year, thing.month, thing.day) in days


def _is_within(number: Any, windows: list[tuple[Any, Any]]) -> bool:
    kind = _kind(number)
    if kind not in (float, int) or (kind is float and (number - number != 0 or round(number, 3) == number)):
        return False
    return any(type(number) is type(low) and low <= number <= high for low, high in windows)


def find(path: str, is_fit: Callable[[Any], bool], ours: tuple[type, ...]) -> tuple[list[tuple[str, str]], bool]:
    """Return the globals that equal a path and pass ``is_fit``, as ``(module, name)``.

    Second value: whether any other object holds a text with the path's last component. Objects of the types
    ``ours`` are skipped.
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
        for text in texts(thing):
            others += _is_named(text, needle)
        if others > 0:
            return places, True
    return sorted(places), False


def texts(thing: Any, depth: int = 4) -> Iterator[Any]:
    """Yield the texts that an object refers to, directly or through untracked containers."""
    held: list[Any] = gc.get_referents(thing)
    if issubclass(type(thing), dict):
        names: dict[Any, Any] = thing
        # Its referents lack keys if all of them are texts.
        held += dict.keys(names)  # pyright: ignore[reportUnknownMemberType]
    for one in held:
        kind = _kind(one)
        if issubclass(kind, (str, bytes, bytearray)):
            yield one
        elif kind is _CodeType:
            yield from (constant for constant in one.co_consts if type(constant) in (str, bytes))
        elif depth and kind.__flags__ & _HAVE_GC and not gc.is_tracked(one):
            yield from texts(one, depth - 1)


def _kind(thing: object) -> type[object]:
    return type(thing)


def _is_named(text: Any, needle: str) -> bool:
    kind = _kind(text)
    if issubclass(kind, str):
        return str.__contains__(text, needle)
    plain = bytearray if issubclass(kind, bytearray) else bytes
    return plain.__contains__(text, os.fsencode(needle))
