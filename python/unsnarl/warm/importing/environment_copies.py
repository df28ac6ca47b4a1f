"""Copies of the environment that a server's imports keep: each worker fills them from its caller's environment.

While imports run, ``os.environ.copy()`` remembers each copy that it returns. A worker changes these very objects, so it
does not matter where they are kept: in a global, an attribute, a closure or a default argument. What imports have
changed in a copy, or in ``os.environ`` before they copied it, is repeated in each worker.

Invariant: all that imports have read of a copy, or changed in it, belongs to the key. The learning run has found that
out; a server with a copy, or a change, that the learning run has not seen serves nothing.
"""

from __future__ import annotations

import os
import sys

from ..renewals import ENVIRONMENT_COPY
from .bodies import importing

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

    from ..facts import Facts
    from ..renewals import Renewal

    Delta = list[tuple[Any, Any]]

# In place of a value: imports have removed the variable.
_REMOVED = object()


class Copies:
    """The copies of one server; a context manager, in which they are remembered."""

    def __init__(self) -> None:
        # Each copy, what it held at first, whether that is bytes, and the module that was imported.
        self._made: list[tuple[dict[Any, Any], dict[Any, Any], bool, str]] = []
        self._deltas: list[tuple[dict[Any, Any], bool, Delta]] = []
        self._is_on = False

    def __enter__(self) -> None:
        """Begin to remember copies."""
        environ: Any = os._Environ  # pyright: ignore[reportPrivateUsage]
        self._plain = plain = environ.copy
        self._is_on = True

        def copy(self: Any) -> Any:
            made = plain(self)
            remember(self, made)
            return made

        remember = self._remember
        environ.copy = self._ours = copy

    def __exit__(self, *_: object) -> None:
        """Let ``os.environ.copy`` be as before; a module may have kept the other function."""
        self._is_on = False
        environ: Any = os._Environ  # pyright: ignore[reportPrivateUsage]
        if environ.copy is self._ours:  # an import may have put another one there
            environ.copy = self._plain

    def _remember(self, environ: object, made: dict[Any, Any]) -> None:
        if self._is_on and (environ is os.environ or environ is os.environb):
            self._made.append((made, dict(made), environ is os.environb, importing()))

    def settle(self, facts: Facts, given: dict[bytes, bytes]) -> str:
        """Find out how to fill the copies; return in words why a worker could not, or nothing.

        ``given`` is the environment from which the interpreter has made ``os.environ``.
        """
        learned, variables = {one.module for one in facts.renewals if is_of_copies(one)}, {*facts.variables}
        text = _decoded(given)
        unkept = _references([({}, {}, False, "")])
        counts = _references(self._made)
        for count, (made, before, is_bytes, module) in zip(counts, self._made, strict=True):
            if [count] == unkept:
                continue  # nobody else has it any more: it was handed to a program
            changed = [name for name in {*made, *before} if made.get(name, _REMOVED) != before.get(name, _REMOVED)]
            if module not in learned or not {os.fsdecode(name) for name in changed} <= variables:
                return f"{module} copies the environment in a way that was not learned"
            base: dict[Any, Any] = given if is_bytes else text
            delta: Delta = [(name, value) for name, value in made.items() if base.get(name, _REMOVED) != value]
            delta += [(name, _REMOVED) for name in base if name not in made]
            self._deltas.append((made, is_bytes, delta))
        self._made.clear()
        return ""

    def fill(self, given: dict[bytes, bytes]) -> None:
        """Fill all copies in this worker."""
        text = _decoded(given) if self._deltas else {}
        for made, is_bytes, delta in self._deltas:
            made.clear()
            made.update(given if is_bytes else text)
            for name, value in delta:
                if value is _REMOVED:
                    made.pop(name, None)
                else:
                    made[name] = value


def _references(made: list[tuple[dict[Any, Any], dict[Any, Any], bool, str]]) -> list[int]:
    """Return how many references there are to each copy; how many are this module's own, depends on the interpreter."""
    return [sys.getrefcount(entry[0]) for entry in made]


def is_of_copies(one: Renewal) -> bool:
    """Return whether a renewal stands for the copies of a module."""
    return one.recipe == ENVIRONMENT_COPY


def _decoded(given: dict[bytes, bytes]) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
