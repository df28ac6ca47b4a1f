"""Signals: what imports have set, what a server needs for itself in its place, and what a worker gets.

Invariant: when the program's first line runs, each signal is handled as the imports have set it, or else as
the caller has.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Iterable
    from typing import Any

    from .. import wire
else:
    import _signal

_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)

# Those for which imports have said what is to be done, were it what was done before.
_of_imports: set[int] = set()


class Imports:
    """While this is entered, it is noted for which signals a handler is set."""

    def __enter__(self) -> None:
        """Put a function that notes it in the place of the plain one, which that of `signal` calls."""
        module: Any = _signal
        self._plain = plain = module.signal

        def signal(signalnum: int, handler: object, /) -> object:
            before = plain(signalnum, handler)
            _of_imports.add(int(signalnum))
            return before

        signal.__module__, signal.__qualname__, signal.__doc__ = plain.__module__, plain.__qualname__, plain.__doc__
        self._noting = module.signal = signal

    def __exit__(self, *problem: object) -> None:
        """Put the plain one back, also where `signal` tells what its own stands for."""
        module: Any = _signal
        module.signal = self._plain
        above: Any = getattr(sys.modules.get("signal"), "signal", None)
        if above and getattr(above, "__wrapped__", None) is self._noting:
            above.__wrapped__ = self._plain


def take_over(wake_fd: int) -> dict[int, Any]:
    """Have the signals that a server waits for write to a descriptor; returns what was set for them."""
    # The pipe first: a signal that is caught before would wake nobody.
    _signal.set_wakeup_fd(wake_fd, warn_on_full_buffer=False)
    return {int(signum): _signal.signal(signum, _nothing) for signum in (_signal.SIGCHLD, _signal.SIGTERM)}


def give_up(taken_over: dict[int, Any]) -> None:
    """Be a process that waits for nothing: nobody's handler is to run before there is a request."""
    _signal.set_wakeup_fd(-1)
    for signum in taken_over:
        _signal.signal(signum, _signal.SIG_DFL)


def put_on(request: wire.Request, taken_over: dict[int, Any]) -> None:
    """Handle signals as the imports have set it, ignore what the caller ignores, block what it blocks."""
    for signum, handler in taken_over.items():
        if handler not in (_signal.SIG_DFL, None):  # None: of C code's making, and lost
            _signal.signal(signum, handler)
    for signum in (n for n in range(1, 65) if request.ignored >> (n - 1) & 1):
        if signum not in _IGNORED_BY_PYTHON and _is_untouched(signum):
            _signal.signal(signum, _signal.SIG_IGN)
    blocked = [n for n in range(1, 65) if request.blocked >> (n - 1) & 1]
    if blocked:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)


def release_stopped(pids: Iterable[int]) -> None:
    """Hang up those who are stopped, as the kernel does with a group that nobody is left to continue.

    It does not with workers: their server is in another group of their session.
    """
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                is_stopped = file.read().rpartition(b")")[2].split()[0] == b"T"
            if is_stopped:
                os.killpg(os.getpgid(pid), _signal.SIGHUP)
                os.killpg(os.getpgid(pid), _signal.SIGCONT)
        except OSError:
            continue  # it is gone


def _is_untouched(signum: int) -> bool:
    return signum not in _of_imports and _signal.getsignal(signum) in (_signal.SIG_DFL, _signal.default_int_handler)


def _nothing(signum: int, frame: object) -> None:
    """Let a signal wake the loop, and do nothing else."""
