"""Where loaded modules come from, to compare a server with the learning run.

Invariant: asking loads nothing, not even a module that loads itself once one of its names is used.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def of(name: str) -> str:
    """Return the file of a loaded module, or the directories of a package without one; nothing if it has neither."""
    try:
        names: Any = object.__getattribute__(sys.modules[name], "__dict__")
        file, path = names.get("__file__"), names.get("__path__")
        return file if isinstance(file, str) else ":".join(entry for entry in path or () if isinstance(entry, str))
    except Exception:  # what stands in sys.modules need not be a module, and a package's path may be computed
        return ""


def of_all(names: Iterable[str]) -> dict[str, str]:
    """Return the origins of those modules that have one."""
    return {name: origin for name in names if (origin := of(name))}


def moved(learned: dict[str, str]) -> str:
    """Return in words which loaded module is another one than was learned, or nothing.

    A module that has put an object of a class of its own in its place may show its file only once that is asked for.
    """
    for name, origin in learned.items():
        if name not in sys.modules or (found := of(name)) == origin:
            continue
        if found or type(sys.modules[name]) is type(sys):
            return f"{name} was {origin} when it was learned, its server has found {found or 'a module without a file'}"
    return ""
