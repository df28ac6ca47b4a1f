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
    from collections.abc import Callable
    from typing import Any


class Imports:
    """While this is entered, it is noted which standard streams are told whether to be line buffered."""

    def __init__(self) -> None:
        self._streams: tuple[Any, ...] = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        self._told = [False] * len(self._streams)

    def __enter__(self) -> None:
        """Give the streams a method of their own, which hides their class's."""
        for number, stream in enumerate(self._streams):
            if _is_usual(stream):
                stream.reconfigure = self._noting(number, stream.reconfigure)

    def __exit__(self, *problem: object) -> None:
        """Take it away."""
        for stream in self._streams:
            if _is_usual(stream):
                stream.__dict__.pop("reconfigure", None)

    def line_buffering(self) -> list[bool | None]:
        """Say of each whether it is to be line buffered, None where nobody has said so."""
        return [stream.line_buffering if is_told else None
                for stream, is_told in zip(self._streams, self._told, strict=True)]  # fmt: skip

    def _noting(self, number: int, plain: Callable[..., None]) -> Callable[..., None]:
        def reconfigure(**settings: Any) -> None:
            plain(**settings)
            self._told[number] |= settings.get("line_buffering") is not None

        return reconfigure


def rebuild(of_imports: list[bool | None]) -> None:
    """Set up ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` for descriptors 0 to 2.

    ``of_imports`` says for each whether it is to be line buffered, None where that depends on the descriptor.
    """
    streams = ((sys.__stdin__, "r"), (sys.__stdout__, "w"), (sys.__stderr__, "w"))
    for (stream, mode), is_line_buffered in zip(streams, of_imports, strict=True):
        if _is_usual(stream):
            _rebuild(stream, mode, is_line_buffered)


def _is_usual(stream: Any) -> bool:
    return type(stream) is io.TextIOWrapper


def _rebuild(text: Any, mode: str, is_line_buffered: bool | None) -> None:
    # Any: calling __init__ again is what type checkers rightly warn of.
    buffer: Any = text.buffer
    raw: Any = getattr(buffer, "raw", buffer)
    if type(raw) is not io.FileIO or raw.closed:
        return
    fd, name = raw.fileno(), raw.name
    is_terminal = os.isatty(fd)
    encoding, errors = text.encoding, text.errors
    write_through = text.write_through
    # create_stdio (Python/pylifecycle.c): line buffered on a terminal, and stderr always; nothing is with -u.
    if is_line_buffered is None:
        is_line_buffered = not _is_unbuffered() and (is_terminal or fd == 2)
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


def _is_unbuffered() -> bool:
    """Say whether the interpreter was told so (``-u``): then what is written has no layer of bytes between."""
    return type(getattr(sys.__stdout__, "buffer", None)) is io.FileIO
