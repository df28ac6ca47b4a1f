"""Gives the directory of a recording to the user whose process will write there.

Only root can record another user's process. From the handover on that user controls the directory:
this command writes there only before, and afterwards treats its content as untrusted input.

Invariant: the directory is given away only if that user can enter it and can read the code that the
process will load. Otherwise the process would print an error, or never begin to record.
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
"""Exit status of ``test`` for a missing permission."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The user, group and supplementary groups with which a process accesses files."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class NotReachable(Exception):  # noqa: N818 -- said of a file
    """Name a file that the owner has no access to: its one argument."""


def other_owner_of(pid: int) -> Owner | None:
    """Return the owner of a process if this command runs as root and the owner is another user, else None."""
    owner = owner_of(pid) if os.geteuid() == 0 else None
    return owner if owner is not None and owner.uid != 0 else None


def owner_of(pid: int) -> Owner | None:
    """Return the owner of a process, or None if it cannot be determined.

    The owner of ``/proc/PID`` does not serve: it is root if the process is not dumpable.
    """
    fields: dict[str, list[int]] = {}
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
            for line in stream:
                name, _, words = line.partition(":")
                if name in ("Uid", "Gid", "Groups"):
                    fields[name] = [int(word) for word in words.split()]
        # Real, effective, saved and file system identity.
        return Owner(fields["Uid"][3], fields["Gid"][3], tuple(fields["Groups"]))
    except (OSError, LookupError, ValueError):
        return None


def give(directory: Path, owner: Owner) -> None:
    """Change the owner of a directory.

    Raises:
        NotReachable: the new owner has no access to the directory, or to this package.
        OSError: the owner cannot be changed, or this process cannot act as that user.
    """
    package, traced = Path(__file__).parents[2], Path(recording.__file__)
    needed = [*reversed(directory.parents), *reversed(package.parents), package, *reversed(traced.parents[:2])]
    files = [package / "__init__.py", traced, Path(_native.__file__ or package)]
    for path in (first_closed(owner, needed, os.X_OK), first_closed(owner, files, os.R_OK)):
        if path is not None:
            raise NotReachable(str(path))
    os.chown(directory, owner.uid, owner.gid)


def first_closed(owner: Owner, paths: Sequence[Path], right: int) -> Path | None:
    """Return the first path for which the owner lacks a permission, or None; needs root.

    A child process with the owner's identity asks the kernel, since access control lists are not in the mode.

    Raises:
        OSError: this process cannot act as that user.
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
