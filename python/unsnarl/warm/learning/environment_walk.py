"""Walks through the environment: imports that look for names with a certain beginning.

``{name: value for name, value in os.environ.items() if name.startswith("TQDM_")}`` depends on the variables with this
beginning only. The import is given names and values that report what is asked about them:

| the import asks | the variable |
|---|---|
| a name for its beginning | all variables with this beginning belong to the key |
| a name or a value for anything else | the same, if the name has a beginning that it was asked for |
| a name for anything else before its beginning, or for nothing | the whole environment was read |

Not noticed: what C code does with a name after its beginning was asked for.

Invariant: names and values answer as plain ones do. In doubt the whole environment was read.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# What any object is asked for, and tells nothing of a text.
_HARMLESS = frozenset(
    [
        "__new__", "__init__", "__class__", "__doc__", "__getattribute__", "__setattr__", "__delattr__", "__dir__",
        "__init_subclass__", "__subclasshook__", "__sizeof__", "maketrans", "startswith",
    ]
)  # fmt: skip


class _Text(str):
    """A name, or the value of a name: ``of`` is the name, or None where this is it."""

    __slots__ = ("is_asked", "is_found", "of", "walk")
    of: _Text | None
    walk: Walk
    is_asked: bool
    is_found: bool


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    def asked(text: _Text, *args: Any, **named: Any) -> Any:
        text.walk.ask(text)
        return method(text, *args, **named)

    return asked


def _startswith(text: _Text, *args: Any) -> bool:
    if text.of is None and len(args) == 1 and text.walk.take(args[0]):
        text.is_asked = True
        text.is_found |= str.startswith(text, args[0])
    else:
        text.walk.ask(text)
    return str.startswith(text, *args)


_PLAIN: dict[str, Any] = {name: getattr(str, name) for name in dir(str) if name not in _HARMLESS}
_METHODS = {name: _reporting(method) for name, method in _PLAIN.items() if callable(method)}
for _name, _method in (_METHODS | {"startswith": _startswith}).items():
    setattr(_Text, _name, _method)


class Walk:
    """One walk.

    ``fail`` is called at most once, if the whole environment was read. ``take`` is given each beginning that a name was
    asked for, and returns whether the variables with this beginning may belong to a key.
    """

    def __init__(self, fail: Callable[[], None], take: Callable[[str], bool]) -> None:
        self._fail = fail
        self._take = take
        self._names: list[_Text] = []
        self._is_judged = False

    def names(self, plain: Iterator[str]) -> Iterator[str]:
        """Yield these names as reporting ones."""
        for name in plain:
            self._names.append(self._made(name, None))
            yield self._names[-1]

    def value(self, name: Any, plain: str) -> str:
        """Return the value of one of the names as a reporting one."""
        return plain if name.is_found else self._made(plain, name)

    def end(self) -> None:
        """Judge the names that nothing was asked about. What is asked from now on does not count."""
        if not all(name.is_asked for name in self._names):
            self.fail()
        self._is_judged = True

    def ask(self, text: _Text) -> None:
        """Note that something other than its beginning was asked of a text."""
        if not (text if text.of is None else text.of).is_found:
            self.fail()

    def take(self, beginnings: object) -> bool:
        """Note that names were asked for a beginning, or one of several; return whether such belong to a key."""
        found: Any = beginnings if type(beginnings) is tuple else (beginnings,)  # pyright: ignore[reportUnknownVariableType]
        return all(type(one) is str and one and self._take(one) for one in found)

    def fail(self) -> None:
        """Note that the whole environment was read."""
        if not self._is_judged:
            self._is_judged = True
            self._fail()

    def _made(self, plain: str, of: _Text | None) -> _Text:
        text = _Text(plain)
        text.of, text.walk, text.is_asked, text.is_found = of, self, False, False
        return text


def walk_of(name: object) -> Walk | None:
    """Return the walk that a name comes from, if it does."""
    return name.walk if type(name) is _Text and name.of is None else None


def plain(name: Any) -> str:
    """Return a name as a plain text."""
    return str.__str__(name)


# Modules that sum up the size of the whole environment and keep a bound made of it, as a default argument: the module,
# the function, the argument, and the value that it has unless the environment is very large (`is_large` in
# crates/client/src/server/key.rs).
_BOUNDS = {"pre_commit.xargs": ("xargs", "_max_length", 1 << 17)}
# The usual limit of arguments and environment, which leaves room for both the bound and the environment of a warm call.
_ARG_MAX = 1 << 21


class Walks:
    """All walks of a learning run, and what they amount to; ``volatile`` are variables that belong to no key."""

    def __init__(self, volatile: frozenset[str]) -> None:
        self._volatile = volatile
        self._walks: list[Walk] = []
        self.prefixes: set[str] = set()
        # Modules of _BOUNDS that were imported, and whether one of them walks now: its values are only summed up.
        self.summing: list[str] = []
        self.is_summing = False

    def begin(self, fail: Callable[[], None]) -> Walk:
        """Begin a walk; ``fail`` is called if it reads the whole environment."""
        self._walks.append(Walk(fail, self._take))
        return self._walks[-1]

    def end(self) -> None:
        """Judge all walks, after the imports."""
        for walk in self._walks:
            walk.end()

    def sums_up(self, module: str) -> bool:
        """Return whether a module that walks through the environment is known to only sum up its size."""
        if module in _BOUNDS:
            self.summing.append(module)
        return module in _BOUNDS

    def summed(self, names: Iterator[Any]) -> Iterator[Any]:
        """Yield names whose values are asked for only for their size."""
        self.is_summing = True
        try:
            yield from names
        finally:
            self.is_summing = False

    def unbound(self) -> list[str]:
        """Return the modules that keep another value than with the usual environments."""
        return [module for module in self.summing if not _is_bound(module)]

    def _take(self, beginning: str) -> bool:
        if any(name.startswith(beginning) for name in self._volatile):
            return False
        self.prefixes.add(beginning)
        return True


def _is_bound(module: str) -> bool:
    function, argument, value = _BOUNDS[module]
    defaults: Any = getattr(getattr(sys.modules.get(module), function, None), "__kwdefaults__", None)
    return os.sysconf("SC_ARG_MAX") >= _ARG_MAX and bool(defaults) and defaults.get(argument) == value
