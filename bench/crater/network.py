"""Moves this process into a network namespace of its own, where only loopback is up.

Tests of other projects may look for hosts elsewhere; here such a test fails at once and alike in every way, and no port
is taken by another process of the machine. Invariant: threads and processes started afterwards are in the namespace
too, so it has to be called before any of them; there is no way back.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNET = 0x40000000
"""linux/sched.h; the os module has it from Python 3.12 on."""
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
"""linux/sockios.h and linux/if.h."""
LOOPBACK = b"lo"


def leave() -> None:
    """Leave all networks but a loopback of its own.

    Raises:
        OSError: the process may not make a network namespace.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", LOOPBACK, 0)
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", LOOPBACK, flags | IFF_UP))
