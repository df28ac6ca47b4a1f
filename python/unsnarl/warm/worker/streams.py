"""Re-initialises the standard streams as a new interpreter would for the descriptors of this worker.

The stream objects stay the same, since imports may have kept ``sys.stdout`` or its buffer. Their ``__init__`` is
called again, which sets buffer size, line buffering and the state of the file. Of unbuffered streams (``-u``) only
the text layer is kept; a raw file that an import has kept still writes to the descriptor.

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
    """Context manager around the imports: notes for which standard streams they set line buffering."""

    def __init__(self) -> None:
        self._streams: tuple[Any, ...] = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        self._is_set = [False] * len(self._streams)

    def __enter__(self) -> None:
        """Give each stream a ``reconfigure`` of its own, which hides the one of its class."""
        for number, stream in enumerate(self._streams):
            if _is_usual(stream):
                stream.reconfigure = self._noting(number, stream.reconfigure)

    def __exit__(self, *problem: object) -> None:
        """Remove the methods."""
        for stream in self._streams:
            if _is_usual(stream):
                stream.__dict__.pop("reconfigure", None)

    def line_buffering(self) -> list[bool | None]:
        """Return for each stream whether it is line buffered, None if no import has set it."""
        return [stream.line_buffering if is_set else None
                for stream, is_set in zip(self._streams, self._is_set, strict=True)]  # fmt: skip

    def _noting(self, number: int, plain: Callable[..., None]) -> Callable[..., None]:
        def reconfigure(**settings: Any) -> None:
            plain(**settings)
            self._is_set[number] |= settings.get("line_buffering") is not None

        return reconfigure


def rebuild(of_imports: list[bool | None]) -> None:
    """Set up ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` for descriptors 0 to 2.

    ``of_imports`` holds for each stream whether it is line buffered; None if that depends on the descriptor.
    """
    streams = ((sys.__stdin__, "r"), (sys.__stdout__, "w"), (sys.__stderr__, "w"))
    for (stream, mode), is_line_buffered in zip(streams, of_imports, strict=True):
        if _is_usual(stream):
            _rebuild(stream, mode, is_line_buffered)


def _is_usual(stream: Any) -> bool:
    return type(stream) is io.TextIOWrapper


def _rebuild(text: Any, mode: str, is_line_buffered: bool | None) -> None:
    # Any: type checkers rightly warn of a second call of __init__.
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
    # A new raw file: FileIO.__init__ on the old one keeps whether it can seek (3.13).
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
    """Return whether the interpreter runs with ``-u``: output streams then have no buffer layer."""
    return type(getattr(sys.__stdout__, "buffer", None)) is io.FileIO
