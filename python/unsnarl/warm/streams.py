"""Make the standard streams what a fresh interpreter would have made of these descriptors.

The stream objects stay the same: imports may have kept ``sys.stdout``, its
buffer. Their ``__init__`` is called again, which sets buffer size, line
buffering and what is known about the file anew. Of unbuffered streams (``-u``) only
the text layer is kept; a file kept by an import still writes to the descriptor.

Invariant: called before the program has read or written anything.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any


def rebuild() -> None:
    """Set up ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` for descriptors 0 to 2."""
    for stream, mode in ((sys.__stdin__, "r"), (sys.__stdout__, "w"), (sys.__stderr__, "w")):
        if type(stream) is io.TextIOWrapper:
            _rebuild(stream, mode)


def _rebuild(text: Any, mode: str) -> None:
    # Any: calling __init__ again is what type checkers rightly warn of.
    buffer: Any = text.buffer
    raw: Any = getattr(buffer, "raw", buffer)
    if type(raw) is not io.FileIO or raw.closed:
        return
    fd, name = raw.fileno(), raw.name
    is_terminal = os.isatty(fd)
    encoding, errors = text.encoding, text.errors
    write_through = text.write_through
    # create_stdio (Python/pylifecycle.c): line buffered on a terminal; stderr always.
    is_line_buffered = is_terminal or fd == 2
    is_buffered = buffer is not raw
    # A new file below: FileIO.__init__ does not forget what it knows about seeking (3.13).
    raw = io.FileIO(fd, mode, closefd=False)
    raw.name = name
    if is_buffered:
        size = max(os.fstat(fd).st_blksize, 2)
        if sys.version_info >= (3, 14):
            size = max(min(size, 8 << 20), io.DEFAULT_BUFFER_SIZE)
        buffer.__init__(raw, size)
    else:
        buffer = raw
    text.__init__(buffer, encoding, errors, newline="\n", line_buffering=is_line_buffered, write_through=write_through)
    text.mode = mode
