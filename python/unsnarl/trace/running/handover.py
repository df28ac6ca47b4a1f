"""Hands the directory of a recording to the user whose process is to write there.

Only root records a process of somebody else. That user may do what he likes in the
directory from then on, so whatever we write there is there before, and what is read
there later is read as what a stranger wrote.

Invariant: nothing is handed over unless that user can come to it, and to the code that
his process is to load; otherwise the process would complain, or never begin to record.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unsnarl import _native
from unsnarl.trace.traced import recording

CLOSED = 1
"""Exit status of ``test`` for a right that is lacking."""


@dataclass(frozen=True, slots=True)
class Owner:
    """As whom a process acts on files."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class NotReachable(Exception):  # noqa: N818 -- said of a file
    """Say which file the owner cannot come to; its one argument."""


def other_owner_of(pid: int) -> Owner | None:
    """Return the owner of a process if we are root and he is not, so that he needs a directory of his own."""
    owner = owner_of(pid) if os.geteuid() == 0 else None
    return owner if owner is not None and owner.uid != 0 else None


def owner_of(pid: int) -> Owner | None:
    """Return the owner of a process, or None if that cannot be told.

    The owner of ``/proc/PID`` would not do: that is root where a process cannot be dumped.
    """
    fields: dict[str, list[int]] = {}
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
            for line in stream:
                name, _, words = line.partition(":")
                if name in ("Uid", "Gid", "Groups"):
                    fields[name] = [int(word) for word in words.split()]
        # Real, effective, saved, and that for files.
        return Owner(fields["Uid"][3], fields["Gid"][3], tuple(fields["Groups"]))
    except (OSError, LookupError, ValueError):
        return None


def give(directory: Path, owner: Owner) -> None:
    """Make a directory the owner's.

    Raises:
        NotReachable: he cannot come to it, or to this package.
        OSError: it cannot be given away, or he cannot be asked.
    """
    package, traced = Path(__file__).parents[2], Path(recording.__file__)
    needed = [*reversed(directory.parents), *reversed(package.parents), package, *reversed(traced.parents[:2])]
    files = [package / "__init__.py", traced, Path(_native.__file__ or package)]
    for path in (first_closed(owner, needed, os.X_OK), first_closed(owner, files, os.R_OK)):
        if path is not None:
            raise NotReachable(str(path))
    os.chown(directory, owner.uid, owner.gid)


def first_closed(owner: Owner, paths: Sequence[Path], right: int) -> Path | None:
    """Return the first path for which the owner lacks a right, or None; only root can ask.

    A process of his asks the kernel: modes alone do not tell, where there are access lists.

    Raises:
        OSError: we cannot become him.
    """
    letter = {os.R_OK: "-r", os.X_OK: "-x"}[right]
    for path in paths:
        asked = subprocess.run(
            ["/bin/sh", "-c", f'test {letter} "$1"', "sh", str(path)],
            check=False,
            cwd="/",
            user=owner.uid,
            group=owner.gid,
            extra_groups=owner.groups,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if asked.returncode == CLOSED:
            return path
        if asked.returncode != 0:
            raise PermissionError(errno.EPERM, f"cannot act as user {owner.uid}")
    return None
