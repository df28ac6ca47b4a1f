"""Notice which paths imports look at: each caller's directory has another file there, and any may come or go.

What opens or lists has an audit event. What only asks whether there is a file has none, and is
wrapped, in ``os`` itself: ``os.path`` and ``pathlib`` ask by its functions.

Invariant: a wrapped function answers as before, is in the sets of ``os.supports_…`` as before, and
binds to no instance, as the built-in one does not.
"""

from __future__ import annotations

import os
import sys

from ..facts import kind_of, stamp_of

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
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


class Seen:
    """Collect absolute paths that were looked at, and how: what is loaded is watched by itself."""

    def __init__(self) -> None:
        # Whether more was asked for than of which kind a file is.
        self.asked: dict[str, bool] = {}
        self.listed: set[str] = set()

    def ask(self, path: str) -> None:
        """Note a question about a path."""
        if not path.startswith(_ELSEWHERE):
            whole = os.path.normpath(path)
            self.asked[whole] = self.asked.get(whole, False) or not _is_of_kind()

    def read_names(self, path: str) -> None:
        """Note that the names in a directory were read, but for who looks for modules and what is installed."""
        if not path.startswith(_ELSEWHERE) and not any(name in _FINDERS for name, _ in _callers(1)):
            self.listed.add(os.path.normpath(path))

    def leave_out(self, directory: str) -> None:
        """Forget what lies in a directory, and its names."""
        self.asked = {path: is_more for path, is_more in self.asked.items() if os.path.dirname(path) != directory}
        self.listed.discard(directory)

    def facts(
        self, known: set[str], directories: set[str]
    ) -> tuple[dict[str, tuple[int, int, int]], dict[str, tuple[int, int, int]], list[str]]:
        """Return what to watch as if it were loaded, what to ask for anew, and what to list.

        ``known`` is watched in any case, and so is what comes and goes in ``directories``. A directory above
        anything that is watched cannot go without it; a link can lead elsewhere.
        """
        listed = sorted(path for path in self.listed if os.path.isdir(path))
        missing = dict.fromkeys(self.listed.difference(listed), False)
        asked = {path: stamp_of(path) if _is_stamped(path, is_more) else kind_of(path)
                 for path, is_more in (self.asked | missing).items() if path not in known}  # fmt: skip
        covered = _above_all(known | directories | set(asked) | set(listed)) | directories
        asked = {path: stamp for path, stamp in asked.items() if path not in covered or os.path.islink(path)}
        beside = {path: stamp_of(path) for path in asked if os.path.dirname(path) in directories}
        beside = {path: stamp for path, stamp in beside.items() if not os.path.isdir(path)}
        rest = [path for path in asked if path not in beside]
        beside |= {path: stamp_of(path) for path in rest[MOST_ASKED:] if not os.path.isdir(path)}
        return beside, {path: stamp for path, stamp in asked.items() if path not in beside}, listed


# Questions that each request asks anew, about 1 us each; what is more is watched.
MOST_ASKED = 32
# What the kernel makes up.
_ELSEWHERE = ("/proc/", "/sys/", "/dev/")
_FINDERS = ("importlib", "_frozen_importlib_external", "pkgutil", "zipimport", "site")
_OF_PATHS = ("genericpath", "posixpath", "pathlib")
# Functions of these that answer by the kind of a file alone.
_OF_KIND = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "is_file", "is_dir", "is_symlink", "is_mount")
) | {"realpath", "_joinrealpath", "resolve"}


def _is_stamped(path: str, is_more: bool) -> bool:
    """Say whether it counts which file is there: of a link, to which of them it leads."""
    return (is_more or os.path.islink(path)) and os.path.isfile(path)


def _callers(count: int) -> list[tuple[str, str]]:
    """Return package and function of who has asked, the nearest first."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    found: list[tuple[str, str]] = []
    while frame is not None and len(found) < count:
        name = str(frame.f_globals.get("__name__"))
        if not name.startswith("_unsnarl"):
            found.append((name.partition(".")[0], frame.f_code.co_name))
        frame = frame.f_back
    return found


def _is_of_kind() -> bool:
    return any(package in _OF_PATHS and function in _OF_KIND for package, function in _callers(3))


def _above_all(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        directory = os.path.dirname(path)
        while directory not in found and directory != os.path.dirname(directory):
            found.add(directory)
            directory = os.path.dirname(directory)
    return found | {"/"}


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
