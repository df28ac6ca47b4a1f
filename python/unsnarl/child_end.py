"""Waits for the end of a child without losing a signal for which a handler in Python is due.

A handler in Python runs after the call that waits. A signal just before that call, or one that the kernel gives to
another thread, would not end it: the handler would run once the child has ended by itself.

The descriptor of the child comes from ``warm.pidfd``, which lies there because the server of a warm command needs it,
and in the command's interpreter that package may load nothing from above itself.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unsnarl.warm import pidfd

if TYPE_CHECKING:
    from collections.abc import Generator

LOOK_EVERY_MS = 5
"""Milliseconds between two looks at the child where the kernel does not tell of its end."""


def wait_for_the_end(child: int) -> None:
    """Wait until a child has ended, without reaping it; handlers of signals run meanwhile.

    Each signal with a handler writes to a pipe; the call waits for the pipe and for the child. It does not rely on
    SIGCHLD, which may be blocked: a mask outlives exec. Handlers run in the main thread alone, so another thread
    just waits.
    """
    if threading.current_thread() is not threading.main_thread():
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    earlier_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        with _ends_kept():
            _wait(child, reading)
    finally:
        signal.set_wakeup_fd(earlier_fd)
        os.close(reading)
        os.close(writing)


def _wait(child: int, signals: int) -> None:
    events = select.poll()
    events.register(signals, select.POLLIN)
    of_child = _end_of(child)
    try:
        if of_child is not None:
            events.register(of_child, select.POLLIN)
        while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            ready = events.poll(LOOK_EVERY_MS if of_child is None else None)
            if any(fd == signals for fd, _ in ready):
                os.read(signals, 4096)
    finally:
        if of_child is not None:
            os.close(of_child)


@contextmanager
def _ends_kept() -> Generator[None]:
    """Let the kernel keep the status of a child also where SIGCHLD is ignored; the child has inherited that."""
    is_ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _end_of(child: int) -> int | None:
    """Return a descriptor that is ready once a child has ended, or None where the kernel or a sandbox has none."""
    try:
        return pidfd.open_of(child)
    except OSError:
        return None
