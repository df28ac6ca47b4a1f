"""Waits for the end of a child without losing a signal for which a handler in Python is due.

A handler in Python runs after the call that waits. A signal just before that call, or one that the kernel gives to
another thread, would not end it: the handler would run once the child has ended by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def wait_for_the_end(child: int) -> None:
    """Wait until a child has ended, without reaping it; handlers of signals run meanwhile.

    Each signal writes to a pipe, and the call waits for the pipe. Handlers run in the main thread alone, so another
    thread just waits.
    """
    if threading.current_thread() is not threading.main_thread():
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        return
    earlier = signal.getsignal(signal.SIGCHLD)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    earlier_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        # Ends of children that are ignored would not be told. The child has inherited what was before.
        signal.signal(signal.SIGCHLD, _do_nothing)
        while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            os.read(reading, 4096)
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL if earlier is None else earlier)
        signal.set_wakeup_fd(earlier_fd)
        os.close(reading)
        os.close(writing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
