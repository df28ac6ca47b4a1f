"""Items that a queue has no room for: each travels in a separate file.

The file is in the directory of segments, which is memory, or on disk where that directory is full. The process that
takes the item removes the file; so does a put that fails.

Invariant: the name of such a file is never the name of a segment.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import tempfile
from typing import Any

from unsnarl._native import ipc_directory

PREFIX = "unsnarl.item-"
"""Segments are called ``unsnarl-UID-NAME``."""
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM))


class SpilledItem:
    """An item in a file: unpickling it reads the file and removes it."""

    def __init__(self, data: bytes) -> None:
        """Write the item's pickle."""
        directory = ipc_directory()
        where = directory if os.path.isdir(directory) else None
        try:
            self.path = _written(data, where)
        except OSError as error:
            if where is None or error.errno not in _NO_ROOM:
                raise
            self.path = _written(data, None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path alone."""
        return _read_back, (self.path,)

    def pickled(self) -> bytes:
        """Return the bytes that travel in the queue."""
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    def remove(self) -> None:
        """Remove the file: no process will read it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def _written(data: bytes, where: str | None) -> str:
    descriptor, path = tempfile.mkstemp(prefix=f"{PREFIX}{os.geteuid()}-", dir=where)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        os.unlink(path)
        raise
    return path


def _read_back(path: str) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    return pickle.loads(data)
