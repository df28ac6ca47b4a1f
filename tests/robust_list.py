"""Runs a program as under qemu-user, which takes no robust list: the kernel then marks no lock of a thread that dies.

    python -m tests.robust_list MODULE [ARGUMENT]...

A filter of system calls answers set_robust_list(2) and get_robust_list(2) with ENOSYS, in this process, in its children
and in what they start. The list that the C library registered for the first thread before is not found any more, so
no lock of unsnarl is in it.

Invariant: the module runs only if the kernel refuses both calls. Exit status: the module's own; 77 with
the reason if the system takes no such filter.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import runpy
import sys

CALLS = {"x86_64": (0xC000003E, 273, 274), "aarch64": (0xC00000B7, 99, 100)}
"""AUDIT_ARCH, set_robust_list(2) and get_robust_list(2) by machine: neither the C library nor Python has names for
them."""

CANNOT = 77
"""The exit status where the system takes no filter of system calls."""

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 22, 38, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


_libc = ctypes.CDLL(None, use_errno=True)


def is_taken() -> bool:
    """Return whether the kernel answers get_robust_list(2)."""
    if platform.machine() not in CALLS:
        return True
    head, length = ctypes.c_void_p(), ctypes.c_size_t()
    number = ctypes.c_long(CALLS[platform.machine()][2])
    return bool(_libc.syscall(number, 0, ctypes.byref(head), ctypes.byref(length)) == 0)


def refuse() -> None:
    """Have the kernel refuse both calls from now on. Raises OSError where it takes no filter."""
    architecture, *numbers = CALLS[platform.machine()]
    steps = (
        _Instruction(_LOAD, 0, 0, _ARCHITECTURE),
        _Instruction(_JUMP_IF_EQUAL, 0, 3, architecture),
        _Instruction(_LOAD, 0, 0, _NUMBER),
        _Instruction(_JUMP_IF_EQUAL, 2, 0, numbers[0]),
        _Instruction(_JUMP_IF_EQUAL, 1, 0, numbers[1]),
        _Instruction(_RETURN, 0, 0, _ALLOW),
        _Instruction(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    )
    instructions = (_Instruction * len(steps))(*steps)
    program = _Program(len(instructions), instructions)
    zero = ctypes.c_ulong(0)
    if (
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0
        or _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero) != 0
    ):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _main() -> None:
    module, *arguments = sys.argv[1:]
    try:
        if is_taken():
            refuse()
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT)
    assert not is_taken()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
