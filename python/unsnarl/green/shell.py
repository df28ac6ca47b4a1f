"""``os.system`` that blocks its caller and no other thread.

C's waits in the kernel. This one waits in gevent's ``Popen``, and keeps what else system(3) promises: meanwhile
SIGINT and SIGQUIT do nothing to the program, and have their default in the command.

Invariant: the handlers that the program had are back when the last of several calls at once is done, and
``signal.getsignal`` never answers with ours.
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
    """Give a forked child its handlers: the calls are its parent's."""
    from unsnarl.green import signals

    global _calls
    _calls = 0
    signals.put_back()


def system(command: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> int:
    """Do what ``os.system`` does, letting the other threads run meanwhile; the result is a wait status."""
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
    _, status = os.waitpid(process.pid, 0)  # Popen knows nothing of a core dump
    process.wait()
    return status
