"""Finds the function through which ``subprocess`` starts programs, for the native part.

It may be in an object of its own, whose calls are to be replaced as well. Looked for in
Python: an import may give the GIL up, and a thread that the interpreter ends there is unwound.

Invariant: a program that has not imported ``_posixsubprocess`` does not find it imported.
"""

import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE = "_posixsubprocess"
_found: "list[Callable[..., int] | None]" = []


def find() -> "Callable[..., int] | None":
    """Return the function, or None in a build without it; look for it once.

    In the child of a fork that came in the midst of an import, another import of the same
    module would wait for ever.
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
