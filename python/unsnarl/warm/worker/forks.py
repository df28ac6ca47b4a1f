"""Defers functions registered with ``os.register_at_fork``: they do not run at the fork that makes a worker.

A plain run has no such fork. Functions of the standard library run at it nevertheless, as its locks and random
generators need.

Invariant: from the first line of the command on, all registered functions run at every fork.
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
    """Wraps a function that is not called before the command runs."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def __call__(self) -> None:
        if _is_command[0]:
            self._function()

    def __repr__(self) -> str:
        """Return the function's own text, which error messages show."""
        return repr(self._function)


class Imports:
    """Context manager around the imports: wraps the functions that they register."""

    def __enter__(self) -> None:
        """Wrap ``os.register_at_fork``."""
        self._plain = plain = os.register_at_fork

        def register_at_fork(**functions: Callable[[], object]) -> None:
            name = str(sys._getframe(1).f_globals.get("__name__"))  # pyright: ignore[reportPrivateUsage]
            if name.partition(".")[0] not in sys.stdlib_module_names:
                given: dict[str, Any] = dict(functions)  # the plain function refuses what is not callable
                functions = {when: _Later(one) if callable(one) else one for when, one in given.items()}
            plain(**functions)

        setattr(os, "register_at_fork", register_at_fork)  # noqa: B010 -- type checkers reject the assignment

    def __exit__(self, *problem: object) -> None:
        """Restore the plain function."""
        os.register_at_fork = self._plain


def begin() -> None:
    """Note that the command runs from here on, in a main thread with a number of its own."""
    _is_command[0] = True
    threading: Any = sys.modules.get("threading")
    renumber = getattr(threading.main_thread(), "_set_native_id", None) if threading else None
    if renumber is not None:
        renumber()  # `threading` does not at a fork (3.13, Thread._after_fork)
