"""Descriptors of processes: a signal by one never reaches a later process of the same number.

The kernel has the calls since 5.3. An interpreter that was built with the headers of an older one lacks the functions
``os.pidfd_open`` and ``signal.pidfd_send_signal``, as conda's builds and uv's do: the C library makes the calls then.

Invariant: no module stays loaded that was not before, as a command may ask which are.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

# The numbers are these on all architectures that unsnarl knows (asm-generic/unistd.h).
_SEND_SIGNAL, _OPEN = 424, 434


def open_of(pid: int) -> int:
    """Return a descriptor of a process, which becomes readable when it ends. Raises OSError."""
    plain = getattr(os, "pidfd_open", None)
    return plain(pid) if plain is not None else _call(_OPEN, pid, 0)


def send_signal(fd: int, signum: int) -> None:
    """Send a signal to the process of a descriptor. Raises OSError."""
    plain = getattr(_signal, "pidfd_send_signal", None)
    if plain is not None:
        plain(fd, signum)
    else:
        _call(_SEND_SIGNAL, fd, int(signum), None, 0)


def _call(number: int, *arguments: int | None) -> int:
    """Make a system call that the interpreter has no function for. Raises OSError."""
    loaded = set(sys.modules)
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).syscall
        function.restype = ctypes.c_long
        words = [ctypes.c_void_p(argument) if argument is None else ctypes.c_long(argument) for argument in arguments]
        result = int(function(ctypes.c_long(number), *words))
        problem = ctypes.get_errno()
    except ImportError:
        result, problem = -1, errno.ENOSYS
    finally:
        for name in sys.modules.keys() - loaded:
            del sys.modules[name]
    if result < 0:
        raise OSError(problem, os.strerror(problem))
    return result
