"""Forbids system calls to this process permanently, as a sandbox does.

Imported by the programs of tests. Invariant: all other calls are as before.
"""

import ctypes
import errno
import os
import struct

_NUMBERS = {
    "x86_64": {"mprotect": 10, "clone": 56, "clone3": 435},
    "aarch64": {"mprotect": 226, "clone": 220, "clone3": 435},
}
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000
_NUMBER, _THIRD_ARGUMENT = 0, 32
"""Offsets in struct seccomp_data (include/uapi/linux/seccomp.h)."""
_PROT_WRITE = 2

Line = tuple[int, int, int, int]


def forbid_writable_pages() -> None:
    """Let mprotect fail with EPERM when it is to make pages writable."""
    call = _NUMBERS[os.uname().machine]["mprotect"]
    _enter(
        [
            (_LOAD, 0, 0, _NUMBER),
            (_EQUAL, 0, 3, call),
            (_LOAD, 0, 0, _THIRD_ARGUMENT),
            (_ANY_BIT, 0, 1, _PROT_WRITE),
            (_RETURN, 0, 0, _FAIL_WITH | errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    )


def forbid_threads() -> None:
    """Let the start of a thread fail with EAGAIN, as where there are too many."""
    calls = _NUMBERS[os.uname().machine]
    _enter(
        [
            (_LOAD, 0, 0, _NUMBER),
            (_EQUAL, 1, 0, calls["clone"]),
            (_EQUAL, 0, 1, calls["clone3"]),
            (_RETURN, 0, 0, _FAIL_WITH | errno.EAGAIN),
            (_RETURN, 0, 0, _ALLOW),
        ]
    )


def _enter(lines: list[Line]) -> None:
    """Apply a filter (struct sock_filter) to this thread and all threads that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code)))
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, filter_mode, program, 0, 0):
        raise OSError(ctypes.get_errno(), "this system allows no seccomp filter")
