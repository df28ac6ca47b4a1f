"""What of the file system a pack may take as known: directories of modules, by their stamps.

A directory's stamp tells of every entry that is added, removed, renamed or replaced. It
does not tell of a file written in place, so to look at it in the place of the files is for those who ask for
it (:func:`stamps`). What names a directory of ``sys.path`` has, it tells in any case (:func:`places`).

Invariant: a directory is left out, and its files stay looked at, where the stamp would
tell less: one that was changed just now (the clock of the file system is coarse, and the next
change may bear the same time), one whose file system keeps no time of change, and, for its files, one with a symbolic
link among those packed. Among the names of a directory every link counts: its target may be a directory one day.
"""

from __future__ import annotations

import os
import time

from . import container, finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SETTLED_NS = 2_000_000_000
"""Age from which on a directory's stamp cannot be shared by two changes: FAT counts in steps of two seconds."""


def stamps(paths: Iterable[str]) -> dict[str, tuple[int, int, int]]:
    """Return the stamps of the directories of these files; to be taken before the files are read."""
    now_ns = time.time_ns()
    found: dict[str, tuple[int, int, int]] = {}
    linked: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        if os.path.islink(path):
            linked.add(folder)
        elif folder not in found:
            try:
                found[folder] = container.stamp(folder)
            except OSError:
                linked.add(folder)
    return {folder: stamp for folder, stamp in found.items() if folder not in linked and _is_settled(stamp, now_ns)}


def places(folders: Iterable[str]) -> dict[str, tuple[object, ...]]:
    """Return the directories of ``sys.path`` as :mod:`container` describes them."""
    found: dict[str, tuple[object, ...]] = {}
    for folder in folders:
        now_ns = time.time_ns()
        try:
            stamp = container.stamp(folder)
            names = (finder.top_level(folder) or frozenset()) | _links(folder)
        except OSError:
            continue
        if _is_settled(stamp, now_ns):
            found[folder] = (*stamp, names)
    return found


def _links(folder: str) -> frozenset[str]:
    with os.scandir(folder) as entries:
        return frozenset(one.name.partition(".")[0] for one in entries if one.is_symlink())


def _is_settled(stamp: tuple[int, int, int], now_ns: int) -> bool:
    changed_ns = stamp[1]
    return changed_ns != 0 and max(stamp[:2]) < now_ns - SETTLED_NS
