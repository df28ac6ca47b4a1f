"""Numbers of the server's own descriptors: all above those that a command inherits."""

from __future__ import annotations

import fcntl
import os

from ..importing.trampolines import HIGH_FD


def raised(fd: int) -> int:
    """Move a descriptor out of the range of a command's own; return its new number."""
    if fd >= HIGH_FD:
        return fd
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        return fd  # no number is free up there; the low one is in no command's way as long as none runs here
    os.close(fd)
    return high


def copied(fd: int) -> int:
    """Return a copy of a descriptor out of that range. Raises OSError."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
