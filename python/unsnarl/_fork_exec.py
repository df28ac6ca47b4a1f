"""Lookup of the function with which ``subprocess`` starts programs, for the native part.

The function may be in a shared object of its own, whose calls have to be replaced too. The lookup is in Python because
an import may release the GIL, and the interpreter may end the thread there, which unwinds its stack.

Invariant: if the program has not imported ``_posixsubprocess``, it is not in ``sys.modules`` afterwards.
"""

import sys

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE = "_posixsubprocess"
_found: "list[Callable[..., int] | None]" = []


def find() -> "Callable[..., int] | None":
    """Return the function, or None in a build without it; looks it up once.

    If a fork happens during an import, a second import of the same module in the child would wait for ever.
    """
    if not _found:
        _found.append(_import())
    return _found[0]


def _import() -> "Callable[..., int] | None":
    was_loaded = _MODULE in sys.modules
    try:
        from _posixsubprocess import fork_exec
    except ImportError:
        return None
    if not was_loaded:
        sys.modules.pop(_MODULE, None)
    return fork_exec
