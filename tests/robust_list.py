"""Whether the kernel finds the locks of a thread that dies: qemu-user, in its place, takes no robust list.

A lock of a killed holder then stays locked for ever, so a test that waits to be told of the death would hang.
"""

import ctypes
import errno
import platform

GET_ROBUST_LIST = {"x86_64": 274, "aarch64": 100}
"""get_robust_list(2) by machine: neither the C library nor Python has a name for it."""


def is_taken() -> bool:
    """Return whether get_robust_list(2) is there."""
    number = GET_ROBUST_LIST.get(platform.machine())
    if number is None:
        return True
    head, length = ctypes.c_void_p(), ctypes.c_size_t()
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(ctypes.c_long(number), 0, ctypes.byref(head), ctypes.byref(length))
    return ctypes.get_errno() != errno.ENOSYS
