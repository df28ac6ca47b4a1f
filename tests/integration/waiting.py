"""Polls for a state outside of this process that sends no notification.

Invariant: each function polls a state under a watchdog; the time that it takes has no influence on
the result of a test.
"""

import os
import select
import time
from collections.abc import Callable

WATCHDOG_S = 180.0
LOOK_EVERY_S = 0.01
"""Long enough to leave the processors to the awaited processes."""

LISTENS = "import os, signal\near, mouth = os.pipe()\nos.set_blocking(mouth, False)\nsignal.set_wakeup_fd(mouth)\n"
LISTEN = "os.read(ear, 1)\n"
"""The beginning and the wait of a program that must notice each signal it handles. A signal that arrives
after the interpreter's last check, and before a blocking call, does not interrupt that call."""


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; fails after :data:`WATCHDOG_S`."""
    deadline = time.monotonic() + WATCHDOG_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        select.select([], [], [], LOOK_EVERY_S)


def until_gone(pid: int) -> None:
    """Wait until a process has ended, even one that is not a child of this process."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([fd], [], [], WATCHDOG_S)
    finally:
        os.close(fd)
    assert ended, f"process {pid} does not end"
