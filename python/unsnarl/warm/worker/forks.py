"""Keep from the fork that makes a worker what imports have registered for forks: a plain run does not make it.

What the standard library registers runs at that fork, too, as its locks and generators need.

Invariant: from the first line of the command on, all is called as it was registered.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_is_command = [False]


class _Later:
    """Stand for a function that is not called before the command runs."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def __call__(self) -> None:
        if _is_command[0]:
            self._function()

    def __repr__(self) -> str:
        """Return what a complaint about it shows."""
        return repr(self._function)


class Imports:
    """While this is entered, what is registered is known."""

    def __enter__(self) -> None:
        """Put the registering function in the place of the plain one."""
        self._plain = plain = os.register_at_fork

        def register_at_fork(**functions: Callable[[], object]) -> None:
            name = str(sys._getframe(1).f_globals.get("__name__"))  # pyright: ignore[reportPrivateUsage]
            if name.partition(".")[0] not in sys.stdlib_module_names:
                given: dict[str, Any] = dict(functions)  # what is no function, the plain one complains of
                functions = {when: _Later(one) if callable(one) else one for when, one in given.items()}
            plain(**functions)

        setattr(os, "register_at_fork", register_at_fork)  # noqa: B010 -- of no checker's kind

    def __exit__(self, *problem: object) -> None:
        """Put the plain one back."""
        os.register_at_fork = self._plain


def begin() -> None:
    """Say that the command runs from here."""
    _is_command[0] = True
