"""Module recorder: collects the names for which imports have searched directories, found or not.

It also collects what a later file could make of something else: directories that are no packages yet, and paths to be
searched that are no directories yet.

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

# `site` looks for these in each start, and may have done so before the recorder was there. The last one makes a package
# of any directory.
_ALWAYS = ("sitecustomize", "usercustomize", "__init__")


def watch(sought: set[str], portions: set[str], look: Callable[[object], None]) -> None:
    """Add every name to ``sought`` for which a directory is searched from now on, and directories to ``portions``.

    A portion is a directory of a name that was searched for, without an ``__init__.py``. ``look`` is called with each
    path that was to be searched, and is no directory.
    """
    _watch_directories(look)
    plain: Callable[..., ModuleSpec | None] = FileFinder.find_spec

    def find_spec(self: FileFinder, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        sought.add(_last(fullname))
        found = plain(self, fullname, target)
        if found is not None and found.loader is None:
            portions.update(found.submodule_search_locations or ())
        return found

    find_spec.__qualname__ = plain.__qualname__
    finder: Any = FileFinder
    finder.find_spec = find_spec


def forbid(name: str, prevent: Callable[[str], None]) -> None:
    """Call ``prevent`` with the name of a module whenever an import begins to look for it."""
    bootstrap: Any = sys.modules["_frozen_importlib"]
    plain = bootstrap._find_spec

    def _find_spec(fullname: str, *args: Any, **named: Any) -> ModuleSpec | None:
        if fullname == name:
            prevent(name)
        found: ModuleSpec | None = plain(fullname, *args, **named)
        return found

    bootstrap._find_spec = _find_spec


def _watch_directories(look: Callable[[object], None]) -> None:
    external: Any = sys.modules["_frozen_importlib_external"]
    plain = external._path_isdir

    def _path_isdir(path: object) -> bool:
        is_there: bool = plain(path)
        caller = sys._getframe(1).f_code.co_name  # pyright: ignore[reportPrivateUsage]
        if not is_there and caller == "path_hook_for_FileFinder":
            look(path)
        return is_there

    external._path_isdir = _path_isdir


def names(sought: set[str]) -> list[str]:
    """Return what was searched for, with the names of all loaded modules: some were loaded before the recorder."""
    return sorted({*sought, *map(_last, list(sys.modules)), *_ALWAYS})


def _last(name: str) -> str:
    return name.rpartition(".")[2]
