"""Walks through the environment: imports that look for names with a certain beginning.

``{name: value for name, value in os.environ.items() if name.startswith("TQDM_")}`` depends on the variables with this
beginning only, and on their order. So does each loop of this shape (:mod:`walk_shape`): the variables with a beginning
that names were asked for belong to the key, by their values and their order. Any other walk reads the whole
environment.

| things that do not work | why |
|---|---|
| to watch what is asked of each name | ``not name.startswith(…)`` keeps all others, and asks nothing else of them |
| to search for what keeps a name | ``" ".join(…)`` keeps a copy, ``sum(…)`` a number |

Invariant: names answer as plain ones do. In doubt the whole environment was read.
"""

from __future__ import annotations

import os
import sys

from . import walk_shape

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any


class _Text(str):
    """A name, which reports the beginnings that it is asked for."""

    __slots__ = ("is_asked", "walk")
    walk: Walk
    is_asked: bool

    def startswith(self, *args: Any) -> bool:
        self.walk.take(args[0] if args else None)
        self.is_asked = True
        return str.startswith(self, *args)


_views: Any = sys.modules["_collections_abc"]
# What yields the names to a loop, between it and the environment.
_BETWEEN = {getattr(_views, view).__iter__.__code__ for view in ("ItemsView", "KeysView")}


class Walk:
    """One walk.

    ``fail`` is called at most once, if the whole environment was read. ``take`` is given each beginning that a name was
    asked for, and returns whether the variables with this beginning may belong to a key. ``read`` returns the source in
    a file.
    """

    def __init__(
        self, fail: Callable[[], None], take: Callable[[str], bool], read: Callable[[str], bytes], module: str
    ) -> None:
        self._fail = fail
        self._take = take
        self._read = read
        self.module = module
        self._names: list[_Text] = []
        self._is_running = self._is_judged = False
        # Where the loop may leave its variables, and which.
        self._left: tuple[dict[str, Any], frozenset[str]] = ({}, frozenset())

    def names(self, plain: Iterator[str]) -> Iterator[str]:
        """Yield these names as reporting ones, if the loop that takes them has the shape."""
        self._is_running = True
        try:
            self._look(sys._getframe())  # pyright: ignore[reportPrivateUsage]
            for name in plain:
                yield name if self._is_judged else self._made(name)
        finally:
            self._is_running = False

    def end(self) -> None:
        """Judge what was asked, and what the loop has left. What is asked from now on does not count."""
        scope, variables = self._left
        is_left = any(type(scope.get(name)) is _Text for name in variables)
        if self._is_running or is_left or not all(name.is_asked for name in self._names):
            self.fail()
        self._is_judged = True

    def take(self, beginnings: object) -> None:
        """Note that names were asked for a beginning, or one of several."""
        found: Any = beginnings if type(beginnings) is tuple else (beginnings,)  # pyright: ignore[reportUnknownVariableType]
        if not all(type(one) is str and one and self._take(one) for one in found):
            self.fail()

    def fail(self) -> None:
        """Note that the whole environment was read."""
        if not self._is_judged:
            self._is_judged = True
            self._fail()

    def _made(self, name: str) -> _Text:
        text = _Text(name)
        text.walk, text.is_asked = self, False
        self._names.append(text)
        return text

    def _look(self, below: FrameType) -> None:
        """Judge the loop that takes the names."""
        taker = below.f_back
        while taker is not None and taker.f_code in _BETWEEN:
            below, taker = taker, taker.f_back
        if taker is None:
            self.fail()
            return
        inner = taker.f_locals
        known = {**taker.f_globals, **inner}
        is_passed = getattr(known.get(".0"), "gi_frame", None) is below
        at = list(taker.f_code.co_positions())[taker.f_lasti // 2]
        try:
            source = self._read(taker.f_code.co_filename)
            left = walk_shape.variables_left(source, at, _spellings(known), is_passed=is_passed, shadowed={*known})
        except (OSError, SyntaxError, ValueError):
            left = None
        if left is None:
            self.fail()
        elif not taker.f_code.co_flags & _OF_FUNCTION:
            self._left = (inner, left)


# The flag of code whose variables end with it (CO_OPTIMIZED in Include/cpython/code.h).
_OF_FUNCTION = 1


def _spellings(known: dict[str, Any]) -> set[str]:
    """Return the expressions for the environment."""
    names = {name for name, value in known.items() if value is os.environ}
    return names | {f"{name}.environ" for name, value in known.items() if value is os}


def is_of_walk(name: object) -> bool:
    """Return whether a text is a name that a walk has yielded."""
    return type(name) is _Text


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
        # Modules of _BOUNDS that were imported, and whether a walk goes on whose values do not matter.
        self.summing: list[str] = []
        self.is_unread = False
        # Returns whether the command may have set a variable with a beginning before a module is imported.
        self.is_changed: Callable[[str, str], bool] = lambda _beginning, _module: False

    def begin(self, fail: Callable[[], None], read: Callable[[str], bytes], module: str) -> Walk:
        """Begin a walk of a module; ``fail`` is called if it reads the whole environment."""
        self._walks.append(Walk(fail, lambda beginning: self._take(beginning, module), read, module))
        return self._walks[-1]

    def end_with(self, module: str) -> None:
        """Note that an import has failed, which may be because of the names it was given."""
        for walk in self._walks:
            if walk.module == module:
                walk.fail()

    def end(self) -> None:
        """Judge all walks, after the imports."""
        for walk in self._walks:
            walk.end()

    def sums_up(self, module: str) -> bool:
        """Return whether a module that walks through the environment is known to only sum up its size."""
        if module in _BOUNDS:
            self.summing.append(module)
        return module in _BOUNDS

    def unread(self, names: Iterator[Any]) -> Iterator[Any]:
        """Yield names whose values do not matter: they are summed up, handed to a known program, or read again."""
        self.is_unread = True
        try:
            yield from names
        finally:
            self.is_unread = False

    def unbound(self) -> list[str]:
        """Return the modules that keep another value than with the usual environments."""
        return [module for module in self.summing if not _is_bound(module)]

    def _take(self, beginning: str, module: str) -> bool:
        if any(name.startswith(beginning) for name in self._volatile) or self.is_changed(beginning, module):
            return False
        self.prefixes.add(beginning)
        return True


def _is_bound(module: str) -> bool:
    function, argument, value = _BOUNDS[module]
    defaults: Any = getattr(getattr(sys.modules.get(module), function, None), "__kwdefaults__", None)
    return os.sysconf("SC_ARG_MAX") >= _ARG_MAX and bool(defaults) and defaults.get(argument) == value
