"""Threads that imports leave behind, and whether a fork ends them.

A library that starts threads when it is loaded, as OpenBLAS does for numpy, may register functions with
``pthread_atfork`` that end these threads before a fork. The library then starts them again at its first computation,
in whichever process. A server and its workers are without such threads: they are no reason against a server. Any other
thread runs on in the server and is missing in each worker.

Invariant: no function of Python's runs at the fork that is made here, which is that of the C library.
"""

from __future__ import annotations

import contextlib
import os
import time

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

# Seconds within which the kernel removes a thread that has been joined, and the time between two looks.
_GONE_WITHIN_S, _LOOK_S = 1.0, 0.001
# The flag of a thread that has begun to end (PF_EXITING in include/linux/sched.h), and its place behind the name.
_EXITING, _FLAGS = 0x4, 6


def are_left() -> bool:
    """Return whether there are threads besides this one, which a fork does not end.

    A thread that is joined at the fork has begun to end by then; one that ends later, by itself, is missing in workers
    that are forked before.
    """
    if not _others():
        return False
    with contextlib.suppress(Exception):  # an interpreter without ctypes, or a module of the command in its place
        _fork()
    if not all(map(_is_ending, _others())):
        return True
    ends_s = time.monotonic() + _GONE_WITHIN_S
    while _others():
        if time.monotonic() > ends_s:
            return True
        time.sleep(_LOOK_S)
    return False


def _others() -> list[str]:
    return [number for number in os.listdir("/proc/self/task") if number != str(os.getpid())]


def _is_ending(number: str) -> bool:
    try:
        with open(f"/proc/self/task/{number}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return True  # it has ended
    return bool(int(fields[_FLAGS]) & _EXITING)


def _fork() -> None:
    """Make a process that ends at once."""
    import ctypes

    libc: Any = ctypes.PyDLL(None)  # with the GIL held: no other thread of Python's interferes
    child: int = libc.fork()
    if child == 0:
        libc._exit(0)
    if child > 0:
        os.waitpid(child, 0)
