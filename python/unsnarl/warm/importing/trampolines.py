"""Makes libffi open its descriptor at a high number, out of the range of a command's own descriptors.

Some builds of libffi map trampolines from their own library file. Such a build opens the file at the first
callback, which an import of ctypes makes, keeps the descriptor, and maps from it again later. If a worker closed
that descriptor or put one of the command's files in its place, libffi would execute the contents of that file.

A server calls :func:`import_ctypes` before any other module imports ctypes.

Invariant: workers keep the descriptors in ``KEPT`` at their numbers.
"""

from __future__ import annotations

import os

# The lowest number of the server's own descriptors; those that a command inherits are below.
HIGH_FD = 200
# Descriptors that libffi has opened.
KEPT: set[int] = set()


def import_ctypes() -> None:
    """Import ctypes while all low numbers are in use, and note which descriptors libffi has opened."""
    fillers: list[int] = []
    try:
        while not fillers or fillers[-1] < HIGH_FD:
            fillers.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        os.close(fillers.pop())
    except OSError:  # the limit is lower: libffi gets any number
        while fillers:
            os.close(fillers.pop())
    __import__("ctypes")
    KEPT.update(int(fd) for fd in os.listdir("/proc/self/fd") if is_of_libffi(f"/proc/self/fd/{fd}"))
    for fd in fillers:
        os.close(fd)
    for fd in KEPT:
        os.set_inheritable(fd, False)


def is_of_libffi(link: str) -> bool:
    """Return whether this link in /proc leads to the library's own file."""
    try:
        return os.path.basename(os.readlink(link)).startswith("libffi.so")
    except OSError:
        return False
