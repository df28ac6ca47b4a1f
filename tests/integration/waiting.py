"""Waiting for something outside of this process that tells nobody when it happens.

Invariant: what is waited for is a state, looked at again and again under a
watchdog; how long it takes has no influence on what a test finds.
"""

import os
import select
import time
from collections.abc import Callable

WATCHDOG_S = 180.0
LOOK_EVERY_S = 0.01
"""Long enough to leave the processors to those who are waited for."""

LISTENS = "import os, signal\near, mouth = os.pipe()\nos.set_blocking(mouth, False)\nsignal.set_wakeup_fd(mouth)\n"
LISTEN = "os.read(ear, 1)\n"
"""What a program begins with, and what it waits in, that is to hear each signal it handles: one that
comes after the interpreter's last look, and before a call that blocks, does not interrupt the call."""


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; fails after :data:`WATCHDOG_S`."""
    deadline = time.monotonic() + WATCHDOG_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        select.select([], [], [], LOOK_EVERY_S)


def until_gone(pid: int) -> None:
    """Wait until a process has ended, whosever child it is."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([fd], [], [], WATCHDOG_S)
    finally:
        os.close(fd)
    assert ended, f"process {pid} does not end"
