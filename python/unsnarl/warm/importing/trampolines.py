"""Have libffi open its descriptor where a command's own are in nobody's way.

Where libffi takes its trampolines from its own file it opens that when the first callback is
made, which an import of ctypes does, keeps the descriptor, and maps from it whenever it needs
more. A worker that had closed it, or put a file of the command in its place, would run what is
in that file.

A server calls :func:`import_ctypes` before anything else imports ctypes. Invariant: workers
keep the descriptors in ``KEPT`` at their numbers.
"""

from __future__ import annotations

import os

# The lowest number for descriptors of ours: below are those a command inherits.
HIGH_FD = 200
# What libffi has opened.
KEPT: set[int] = set()


def import_ctypes() -> None:
    """Import ctypes with all low numbers taken, and note what libffi has opened."""
    fillers: list[int] = []
    try:
        while not fillers or fillers[-1] < HIGH_FD:
            fillers.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        os.close(fillers.pop())
    except OSError:  # fewer are allowed: it gets the number that comes
        while fillers:
            os.close(fillers.pop())
    __import__("ctypes")
    KEPT.update(int(fd) for fd in os.listdir("/proc/self/fd") if is_of_libffi(f"/proc/self/fd/{fd}"))
    for fd in fillers:
        os.close(fd)
    for fd in KEPT:
        os.set_inheritable(fd, False)


def is_of_libffi(link: str) -> bool:
    """Say whether this link in /proc leads to the library's own file."""
    try:
        return os.path.basename(os.readlink(link)).startswith("libffi.so")
    except OSError:
        return False
