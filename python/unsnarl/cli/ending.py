"""Signals that request a verb to end, turned into an exception that undoes what the verb began.

Invariant: the first signal counts; further ones are ignored while the verb cleans up, and a
signal that the caller ignores stays ignored.
"""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from unsnarl.cli.failure import Ended
from unsnarl.signal_handlers import replaced

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""The signals that request an end, besides SIGINT, for which Python raises KeyboardInterrupt."""


@contextmanager
def by_exception() -> Generator[None]:
    """Raise ``Ended`` in the main thread where a signal would end the process without cleaning up."""
    is_ending = False

    # Not SIG_IGN after the first one: processes that clean up would inherit it.
    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal is_ending
        if not is_ending:
            is_ending = True
            raise Ended(signal.Signals(number).name)

    with replaced(dict.fromkeys(SIGNALS, end)):
        yield


def as_interrupt() -> AbstractContextManager[None]:
    """Raise ``KeyboardInterrupt`` for these signals, as for SIGINT: the verb ends in order with a result."""
    return replaced(dict.fromkeys(SIGNALS, signal.default_int_handler))
