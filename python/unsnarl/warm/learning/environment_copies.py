"""Copies of the environment that imports make by ``os.environ.copy()``: each reports what is read of it.

A copy holds all variables, whatever they are, and a worker fills it again from its caller's environment
(``importing/environment_copies.py``). So only what imports read of a copy, or change in it, decides something.

| on a copy, imports | which counts as |
|---|---|
| read one variable | a read of this variable |
| set or remove one variable | a change of it, as in ``os.environ``: its value belongs to the key |
| read all names, compare, copy or merge it | a read of the whole environment |
| make it the attributes of an object, or globals | the same: C code then reads it past the methods |
| put it in the place of ``os.environ`` | the same |

``dict(copy)``, ``{**copy}`` and ``f(**copy)`` call ``keys``, since ``__iter__`` is overridden (PyDict_Merge in
Objects/dictobject.c).

Only copies by modules that each run imports, before any of the command's own code, can be filled again: code that has
run before may have changed the environment, and a plain run would find the change in the copy.

Invariant: a copy answers as a plain dictionary does. In doubt the whole environment was read.
"""

from __future__ import annotations

import gc
import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Plain = dict[Any, Any]
else:
    Plain = dict

_ABSENT = object()


class Reports:
    """What a copy calls: for a read and a change of one variable, and for anything that depends on all of them."""

    def __init__(
        self,
        read: Callable[[Any, Callable[[Any], Any]], Any],
        change: Callable[[Any], None],
        whole: Callable[[], None],
    ) -> None:
        self.read = read
        self.change = change
        self.whole = whole


class Copy(Plain):
    """One copy."""

    __slots__ = ("before", "changed", "reports")
    reports: Reports
    before: dict[Any, Any]
    changed: set[Any]

    def __getitem__(self, key: Any) -> Any:
        """Return the value of a variable."""
        if type(key) not in (str, bytes):  # a variable's name is plain; any other key may equal one
            self.reports.whole()
        return self.reports.read(key, super().__getitem__)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a variable, or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        """Return whether there is a variable."""
        return self.get(key, _ABSENT) is not _ABSENT

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set a variable."""
        self._change(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        """Remove a variable, which there is."""
        self._change(key)
        super().__delitem__(key)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Set a variable unless there is one."""
        self._change(key)
        return super().setdefault(key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a variable."""
        self._change(key)
        return super().pop(key, *default)

    def update(self, *others: Any, **named: Any) -> None:
        """Set several variables."""
        for key, value in dict(*others, **named).items():
            self[key] = value

    def _change(self, key: Any) -> None:
        if type(key) in (str, bytes):
            self.changed.add(key)
            self.reports.change(key)
        else:
            self.reports.whole()


def _update(self: Copy, other: Any) -> Copy:
    self.update(other)
    return self


def _of_all(name: str) -> Callable[..., Any]:
    plain = getattr(dict, name)

    def read(self: Copy, *args: Any) -> Any:
        self.reports.whole()
        return plain(self, *args)

    return read


_OF_ALL = (
    *("__iter__", "__reversed__", "__len__", "__eq__", "__ne__", "__or__", "__ror__", "__repr__", "__sizeof__"),
    *("__reduce__", "__reduce_ex__", "clear", "copy", "items", "keys", "popitem", "values"),
)
_BY_NAME = {"__ior__": _update, **{name: _of_all(name) for name in _OF_ALL}}
for _name, _method in _BY_NAME.items():
    setattr(Copy, _name, _method)


class Copies:
    """All copies of a learning run; ``are_fillable`` tells whether a worker could fill a copy made now."""

    def __init__(self) -> None:
        self.are_fillable = False
        self._made: list[tuple[Copy, Callable[[], None]]] = []

    def make(self, plain: dict[Any, Any], reports: Reports, whole: Callable[[], None]) -> Copy:
        """Return a reporting copy; ``whole`` is called after the imports if something was read past its methods."""
        made = Copy(plain)
        made.reports, made.before, made.changed = reports, plain, set()
        self._made.append((made, whole))
        return made

    def end(self) -> None:
        """Judge the copies after the imports."""
        plain: Any = dict
        now: object = os.environ
        for made, whole in self._made:
            names = {*plain.keys(made), *made.before} - made.changed
            is_as_reported = all(plain.get(made, name) == made.before.get(name) for name in names)
            if made is now or not is_as_reported or _is_namespace(made):
                whole()


def is_copy(thing: object) -> bool:
    """Return whether an object is a copy."""
    return type(thing) is Copy


def _is_namespace(made: Copy) -> bool:
    """Return whether a copy is the dictionary of an object, or the globals of a function."""
    holders: Iterable[Any] = gc.get_referrers(made)
    for one in holders:
        for name in ("__dict__", "__globals__"):
            try:
                if object.__getattribute__(one, name) is made:
                    return True
            except AttributeError:
                continue
    return False
