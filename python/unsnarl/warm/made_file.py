"""The file in which a learning run notes what its imports make, for the start that has made the run to put in order.

A run that comes to its end has removed its temporary files itself. Invariant: an entry is written before what it names
is made; what is not there is passed over.
"""

from __future__ import annotations

import os

SUFFIX = ".made"
"""Suffix of the file next to the one that a learning run writes."""

_TEMPORARY = b"-"
# The unwrapped function, and the directory, of which a question would count as the import's.
_write, _here = os.write, os.getcwd()


class MadeFile:
    """The file, open to be written."""

    def __init__(self, path: str) -> None:
        """Make an empty file. Raises OSError."""
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note_directory(self, path: str, mode: int) -> None:
        """Note that a directory is about to be made for good, with this mode."""
        self._note(b"%o" % mode, path)

    def note_temporary(self, path: str) -> None:
        """Note that a temporary file or directory is about to be made."""
        self._note(_TEMPORARY, path)

    def _note(self, kind: bytes, path: str) -> None:
        try:
            _write(self._fd, b"%b %b\0" % (kind, os.fsencode(path if path.startswith("/") else f"{_here}/{path}")))
        except OSError:
            pass  # the disk is full: what is made stays as it is


def put_in_order(path: str, mask: int) -> None:
    """Remove what temporary files a learning run has left, and give directories the modes of a run with this mask.

    A learning run has a mask of its own, by which it finds what keeps one.
    """
    import shutil

    try:
        with open(path, "rb") as file:
            entries = file.read().split(b"\0")[:-1]
    except OSError:
        return  # it was ended before it could make anything
    for entry in entries:
        kind, _, name = entry.partition(b" ")
        try:
            if kind != _TEMPORARY:
                os.chmod(name, int(kind, 8) & ~mask)
            elif os.path.isdir(name) and not os.path.islink(name):
                shutil.rmtree(name, ignore_errors=True)
            else:
                os.unlink(name)
        except OSError:
            pass  # it was not made, or is removed already
