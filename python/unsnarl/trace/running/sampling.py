"""Reads the stacks of the recorded processes from this process, while they run.

The thread runs native code without the GIL, so the supervisor handles signals as before. Must never: fail the traced
run; a process whose memory cannot be read has fewer lines in its report. Invariant: the thread has ended, and the
samples are written, when the block is left.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unsnarl import _native

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def sampled(directory: Path) -> Generator[None, None, None]:
    """Read the stacks of the processes that record into a directory of this user, during the block."""
    sampler = _native.TraceSampler(str(directory))
    thread = threading.Thread(target=sampler.run, name="unsnarl-sampler", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads are allowed: the report has fewer lines
        yield
        return
    try:
        yield
    finally:
        sampler.stop()
        thread.join()
