"""Notice which relative paths imports look at: each caller's directory has another file there.

What opens or lists has an audit event. What only asks whether there is a file has none, and is
wrapped, in ``os`` itself: ``os.path`` and ``pathlib`` ask by its functions.

Invariant: a wrapped function answers as before, is in the sets of ``os.supports_…`` as before, and
binds to no instance, as the built-in one does not.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Audit events with a path for their first argument, None for the working directory.
EVENTS = frozenset(("open", "os.listdir", "os.scandir"))
_ASKING = ("stat", "lstat", "access", "readlink")
_SETS = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)


class _Asking:
    """Stand for a function of ``os`` that takes a path."""

    def __init__(self, plain: Callable[..., object], look: Callable[[object], None]) -> None:
        self._plain = plain
        self._look = look
        self.__name__, self.__doc__ = plain.__name__, plain.__doc__

    def __call__(self, *args: object, **named: object) -> object:
        if named.get("dir_fd") is None:
            self._look(args[0] if args else named.get("path", ""))
        return self._plain(*args, **named)


def watch(look: Callable[[object], None]) -> None:
    """Have ``look`` called with every path that is asked for without an audit event."""
    for name in _ASKING:
        plain = getattr(os, name)
        asking = _Asking(plain, look)
        for supporting in _SETS:
            if plain in supporting:
                supporting.add(asking)
        setattr(os, name, asking)


def text_of(path: object) -> str:
    """Return a path as text; nothing for a descriptor, which is a place of its own."""
    if path is None:
        return "."
    name: Any = path
    return os.fsdecode(name) if isinstance(path, (str, bytes, os.PathLike)) else ""


def above(path: str) -> list[str]:
    """Return a relative path and the directories it leads through: what comes or goes there changes what is found."""
    found: list[str] = []
    while path:
        found.append(path)
        path = os.path.dirname(path)
    return found
