"""Signals that ask a verb to end, turned into an exception that undoes what it began.

Invariant: the first one counts; whatever comes while it is undone is ignored, and a
signal that the caller has ignored stays ignored, as ``nohup`` wants it.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Generator
from types import FrameType
from typing import NoReturn

from unsnarl.cli.failure import Ended

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a process that is asked to, beside SIGINT, which Python raises itself."""


@contextlib.contextmanager
def by_exception() -> Generator[None]:
    """Raise ``Ended`` in the main thread where a signal would end the process with nothing undone."""
    taken = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(signal.Signals(number).name)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
