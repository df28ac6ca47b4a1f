"""Stamps of directories: a pack relies on them in place of single checks of files.

A directory's stamp changes when an entry is added, removed, renamed or replaced. It does not change when a file is
written in place, so checking the stamp in place of the files (:func:`stamps`) is optional. The names in a directory
of ``sys.path`` (:func:`roots`) always rely on the stamp.

Invariant: a directory whose stamp could miss a change is left out, and its files are checked one by one. Left out are:

- a directory changed just now: the file system's clock is coarse, and the next change may get the same time;
- a directory on a file system without a time of change;
- for :func:`stamps`, a directory with a symbolic link among the packed files.

Every link counts as a name of a directory: its target may become a directory.
"""

from __future__ import annotations

import os
import time

from . import container, finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SETTLED_NS = 2_000_000_000
"""Age after which two changes of a directory cannot share a stamp: FAT counts in steps of two seconds."""


def stamps(paths: Iterable[str]) -> dict[str, tuple[int, int, int]]:
    """Return the stamps of these files' directories; call it before the files are read."""
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


def roots(folders: Iterable[str]) -> dict[str, tuple[object, ...]]:
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
