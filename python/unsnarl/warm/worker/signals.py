"""Signal dispositions: recorded from the imports, replaced in the server, and applied in each worker.

Invariant: when the program's first line runs, each signal has the disposition that the imports have set, or else the
caller's.
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

# Signals whose handler imports have set, even to the one it had.
_of_imports: set[int] = set()


class Imports:
    """Context manager around the imports: notes for which signals they set a handler."""

    def __enter__(self) -> None:
        """Wrap ``_signal.signal``, which ``signal.signal`` calls."""
        module: Any = _signal
        self._plain = plain = module.signal

        def signal(signalnum: int, handler: object, /) -> object:
            before = plain(signalnum, handler)
            _of_imports.add(int(signalnum))
            return before

        signal.__module__, signal.__qualname__, signal.__doc__ = plain.__module__, plain.__qualname__, plain.__doc__
        self._noting = module.signal = signal

    def __exit__(self, *problem: object) -> None:
        """Restore the plain function, also as ``__wrapped__`` of ``signal.signal``."""
        module: Any = _signal
        module.signal = self._plain
        above: Any = getattr(sys.modules.get("signal"), "signal", None)
        if above and getattr(above, "__wrapped__", None) is self._noting:
            above.__wrapped__ = self._plain


def take_over(wake_fd: int) -> dict[int, Any]:
    """Make the server's own signals write to a descriptor; return the handlers they had."""
    # The descriptor first: a signal caught before it is set would not wake the server.
    _signal.set_wakeup_fd(wake_fd, warn_on_full_buffer=False)
    return {int(signum): _signal.signal(signum, _nothing) for signum in (_signal.SIGCHLD, _signal.SIGTERM)}


def give_up(taken_over: dict[int, Any]) -> None:
    """Reset the server's own signals in a spare: no handler may run before there is a request."""
    _signal.set_wakeup_fd(-1)
    for signum in taken_over:
        _signal.signal(signum, _signal.SIG_DFL)


def apply(request: wire.Request, taken_over: dict[int, Any]) -> None:
    """Set the handlers of the imports, ignore what the caller ignores, and block what it blocks."""
    for signum, handler in taken_over.items():
        if handler not in (_signal.SIG_DFL, None):  # None: set by C code, and lost
            _signal.signal(signum, handler)
    for signum in ignored(request):
        if _is_untouched(signum):
            _signal.signal(signum, _signal.SIG_IGN)
    blocked = [n for n in range(1, 65) if request.blocked >> (n - 1) & 1]
    if blocked:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)


def ignored(request: wire.Request) -> list[int]:
    """Return the signals that the caller ignores, without those that Python ignores in any case."""
    return [n for n in range(1, 65) if request.ignored >> (n - 1) & 1 and n not in _IGNORED_BY_PYTHON]


def release_stopped(pids: Iterable[int]) -> None:
    """Send SIGHUP and SIGCONT to stopped workers, as the kernel does to a newly orphaned process group.

    The kernel does not do so to workers: their parent, the server, is in another group of their session.
    """
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                is_stopped = file.read().rpartition(b")")[2].split()[0] == b"T"
            if is_stopped:
                os.killpg(os.getpgid(pid), _signal.SIGHUP)
                os.killpg(os.getpgid(pid), _signal.SIGCONT)
        except OSError:
            continue  # it has ended


def _is_untouched(signum: int) -> bool:
    return signum not in _of_imports and _signal.getsignal(signum) in (_signal.SIG_DFL, _signal.default_int_handler)


def _nothing(signum: int, frame: object) -> None:
    """Do nothing: the signal has woken the loop by the descriptor."""
