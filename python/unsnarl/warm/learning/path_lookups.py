"""Path recorder: collects the paths that imports open, list or query, as what is found there may change.

Opening and listing have audit events. Queries (``stat`` and the like) have none, so these functions of ``os`` are
wrapped; ``os.path`` and ``pathlib`` call them.

Invariant: a wrapped function answers as the plain one, is a member of the same ``os.supports_…`` sets, and like a
built-in function does not bind to an instance.
"""

from __future__ import annotations

import os
import sys

from ..facts import kind_of, shortened, stamp_of

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import Any

# Audit events whose first argument is a path, or None for the working directory.
EVENTS = frozenset(("open", "os.listdir", "os.scandir"))
_ASKING = ("stat", "lstat", "access", "readlink")
_SETS = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)


class _Asking:
    """Wraps a function of ``os`` that takes a path."""

    def __init__(self, plain: Callable[..., object], look: Callable[[object], None]) -> None:
        self._plain = plain
        self._look = look
        self.__name__, self.__doc__ = plain.__name__, plain.__doc__

    def __call__(self, *args: object, **named: object) -> object:
        if named.get("dir_fd") is None:
            self._look(args[0] if args else named.get("path", ""))
        return self._plain(*args, **named)


def watch(look: Callable[[object], None]) -> None:
    """Call ``look`` with every path that is queried without an audit event."""
    for name in _ASKING:
        plain = getattr(os, name)
        asking = _Asking(plain, look)
        for supporting in _SETS:
            if plain in supporting:
                supporting.add(asking)
        setattr(os, name, asking)


class Seen:
    """Absolute paths that imports have examined, and how; loaded files are recorded elsewhere."""

    def __init__(self) -> None:
        # For each path, whether more than the kind of the file was queried.
        self.asked: dict[str, bool] = {}
        self.listed: set[str] = set()
        # Directories of which imports have enumerated the modules or the installed packages, as written: shortening
        # `link/..` would lead elsewhere.
        self.enumerated: set[str] = set()
        # Directories without `__init__.py` that have the name of a module which was searched for.
        self.portions: set[str] = set()

    def ask(self, path: str) -> None:
        """Note a query of a path."""
        if not path.startswith(_ELSEWHERE):
            whole = shortened(path)
            self.asked[whole] = self.asked.get(whole, False) or not _is_of_kind()

    def read_names(self, path: str) -> None:
        """Note that a directory was listed, unless by a finder of modules, which searches it for one name."""
        by = next((module for module, _ in callers(1)), "")
        if path.startswith(_ELSEWHERE) or by in _FINDERS:
            return
        if by.partition(".")[0] in _ENUMERATORS:
            self.enumerated.add(path)
        else:
            self.listed.add(shortened(path))

    def below(self, directory: str, opened: Iterable[str]) -> tuple[set[str], set[str], set[str]]:
        """Return what was queried or ``opened``, listed, and enumerated, below a directory, as paths relative to it."""
        start = directory.rstrip("/") + "/"
        asked, listed, enumerated = (
            {path[len(start) :].strip("/") for path in paths if f"{path}/".startswith(start)}
            for paths in ({*self.asked, *opened}, self.listed, self.enumerated)
        )
        return asked - {""}, {path or "." for path in listed}, {path or "." for path in enumerated}

    def leave_out(self, directory: str) -> None:
        """Forget the paths in a directory, its listing, and the directory itself with those above."""
        gone = _above_all([directory]) | {directory}
        self.asked = {
            path: is_more
            for path, is_more in self.asked.items()
            if path not in gone and os.path.dirname(path) != directory
        }
        self.listed.discard(directory)

    def facts(
        self, known: set[str], directories: set[str]
    ) -> tuple[dict[str, tuple[int, int, int]], dict[str, tuple[int, int, int]], list[str]]:
        """Return files to watch like loaded ones, paths to query in each request, and directories to list.

        ``known`` files and changes in ``directories`` are watched in any case. A directory above a watched path
        needs no query, since it cannot be removed alone; a link does, since it may lead to another place.
        """
        listed = sorted(path for path in self.listed if os.path.isdir(path))
        missing = {path: False for path in self.listed | self.enumerated if not os.path.isdir(path)}
        asked = {path: stamp_of(path) if _is_stamped(path, is_more) else kind_of(path)
                 for path, is_more in (self.asked | missing).items() if path not in known}  # fmt: skip
        covered = _above_all(known | directories | set(asked) | set(listed)) | directories
        asked = {path: stamp for path, stamp in asked.items() if path not in covered or os.path.islink(path)}
        beside = {path: stamp_of(path) for path in asked if os.path.dirname(path) in directories}
        beside = {path: stamp for path, stamp in beside.items() if not os.path.isdir(path)}
        rest = [path for path in asked if path not in beside]
        beside |= {path: stamp_of(path) for path in rest[MOST_ASKED:] if not os.path.isdir(path)}
        return beside, {path: stamp for path, stamp in asked.items() if path not in beside}, listed


# Paths that each request queries, about 1 µs each; further ones are watched.
MOST_ASKED = 32
# File systems of the kernel.
_ELSEWHERE = ("/proc/", "/sys/", "/dev/")
# Modules that list a directory to search it (`module_lookups.py`), and packages that list modules or distributions.
_FINDERS = ("importlib._bootstrap_external", "_frozen_importlib_external", "zipimport", "site")
_ENUMERATORS = ("importlib", "pkgutil")
_OF_PATHS = ("genericpath", "posixpath", "pathlib")
# Functions of these modules whose result depends on the kind of a file alone.
_OF_KIND = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "is_file", "is_dir", "is_symlink", "is_mount")
) | {"realpath", "_joinrealpath", "resolve"}


def _is_stamped(path: str, is_more: bool) -> bool:
    """Return whether the identity of the file counts; of a link, its target."""
    return (is_more or os.path.islink(path)) and os.path.isfile(path)


def callers(count: int) -> list[tuple[str, str]]:
    """Return module and function of the callers, the nearest first."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    found: list[tuple[str, str]] = []
    while frame is not None and len(found) < count:
        name = str(frame.f_globals.get("__name__"))
        if not name.startswith("_unsnarl"):
            found.append((name, frame.f_code.co_name))
        frame = frame.f_back
    return found


def _is_of_kind() -> bool:
    return any(module.partition(".")[0] in _OF_PATHS and function in _OF_KIND for module, function in callers(3))


def _above_all(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        directory = os.path.dirname(path)
        while directory not in found and directory != os.path.dirname(directory):
            found.add(directory)
            directory = os.path.dirname(directory)
    return found | {"/"}


def text_of(path: object) -> str:
    """Return a path as text; nothing for a descriptor."""
    if path is None:
        return "."
    name: Any = path
    return os.fsdecode(name) if isinstance(path, (str, bytes, os.PathLike)) else ""


def above(path: str) -> list[str]:
    """Return a relative path and the directories on it: a change in any of them changes what is found."""
    found: list[str] = []
    while path:
        found.append(path)
        path = os.path.dirname(path)
    return found
