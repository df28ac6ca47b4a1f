"""``os.system`` that blocks its caller and no other thread.

The C library's system(3) waits in the kernel. This one waits in gevent's ``Popen``, and keeps the other promises of
system(3): during the call SIGINT and SIGQUIT have no effect on the program, and their default effect on the command.

Invariant: the program's handlers are restored when the last of several concurrent calls has ended, and
``signal.getsignal`` never returns a handler of unsnarl.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

_IGNORED = (signal.SIGINT, signal.SIGQUIT)
_calls = 0


def install() -> None:
    """Replace ``os.system``."""
    os.system = system
    os.register_at_fork(after_in_child=_forget_calls)


def _forget_calls() -> None:
    """Restore the handlers in a forked child: the calls in progress belong to its parent."""
    from unsnarl.green import signals

    global _calls
    _calls = 0
    signals.put_back()


def system(command: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> int:
    """Do what ``os.system`` does while the other threads run; returns a wait status."""
    from unsnarl.green import signals

    global _calls
    text = os.fsencode(command)
    sys.audit("os.system", text)
    _calls += 1
    if _calls == 1:
        signals.set_aside(_IGNORED)
    try:
        return _run(text)
    finally:
        _calls -= 1
        if _calls == 0:
            signals.put_back()


def _run(command: bytes) -> int:
    popen: Any = import_module("gevent.subprocess").Popen
    try:
        process = popen(["/bin/sh", "-c", command], close_fds=False, restore_signals=False)
    except OSError:
        return -1
    _, status = os.waitpid(process.pid, 0)  # the status includes the core dump flag, which Popen loses
    process.wait()
    return status
