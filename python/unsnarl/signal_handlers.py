"""Signal handlers that a block installs, with the earlier ones restored at its end.

Invariant: an ignored signal stays ignored, as ``nohup`` wants it, and a handler that C code
installed is left alone, since Python could not restore it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


@contextmanager
def replaced(handlers: Mapping[signal.Signals, Handler]) -> Generator[None]:
    """Handle each signal by its function until the end of the block; main thread only."""
    before: dict[signal.Signals, Handler] = {}
    try:
        for number, handler in handlers.items():
            earlier = signal.getsignal(number)
            if earlier not in (signal.SIG_IGN, None):  # None: C code handles it
                before[number] = earlier
                signal.signal(number, handler)
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
