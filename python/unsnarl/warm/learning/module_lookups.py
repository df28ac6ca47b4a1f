"""Module recorder: collects the names for which imports have searched directories, found or not.

A file that comes to such a directory later can only hide a module, or be found by an import that has failed, if it has
one of these names. Directories whose modules or installed packages were enumerated are recorded elsewhere
(``path_lookups.Seen``): there every such name counts.

Things that do not work:

- the audit event ``import``: ``importlib.import_module`` and ``find_spec`` have none;
- an entry on ``sys.meta_path``: imports may keep or change that list.

Invariant: the finder answers as the plain one.
"""

from __future__ import annotations

import sys
from importlib.machinery import FileFinder

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# `site` looks for these in each start, and may have done so before the recorder was there.
_ALWAYS = ("sitecustomize", "usercustomize")


def watch(sought: set[str]) -> None:
    """Add every name to ``sought`` for which a directory is searched from now on."""
    plain: Callable[..., ModuleSpec | None] = FileFinder.find_spec

    def find_spec(self: FileFinder, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        sought.add(_last(fullname))
        return plain(self, fullname, target)

    find_spec.__qualname__ = plain.__qualname__
    finder: Any = FileFinder
    finder.find_spec = find_spec


def names(sought: set[str]) -> list[str]:
    """Return what was searched for, with the names of all loaded modules: some were loaded before the recorder."""
    return sorted({*sought, *map(_last, list(sys.modules)), *_ALWAYS})


def _last(name: str) -> str:
    return name.rpartition(".")[2]
