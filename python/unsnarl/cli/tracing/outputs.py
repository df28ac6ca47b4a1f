"""The places a trace and its reports are written to, checked before the program runs."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from unsnarl.cli.failure import CommandError, removed_directory

if TYPE_CHECKING:
    from unsnarl.cli.tracing.arguments import TraceRequest

MARGIN_BYTES = 16 << 20
"""Free disk space for the reports, in addition to the recording."""


def check_writable(request: TraceRequest) -> None:
    """Fail before the program runs if an output cannot be written, or the disk is too full.

    Raises:
        CommandError: an output cannot be written; the status is 1.
    """
    from unsnarl.trace.running.session import free_bytes

    for path in (request.output, request.json_output, request.data, request.collapsed):
        if path is not None:
            check_path(path)
    needed = (request.size_mb << 20) + MARGIN_BYTES
    try:
        room = free_bytes(request.output.parent)
    except OSError as error:
        raise cannot_record(request.output.parent, error) from None
    if room < needed:
        raise CommandError(
            f"no room for a trace in {str(request.output.parent.absolute())!r}: {room >> 20} MiB are free",
            f"a trace needs {needed >> 20} MiB: name another place with `--output`, or less with `--size`",
            1,
        )


def check_path(path: Path) -> None:
    """Fail if a file cannot be written; raises as ``check_writable``."""
    try:
        mode, folder_mode = _mode(path), _mode(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise CommandError(f"cannot write {str(path)!r}: it is a directory", "name a file: `--output trace.html`", 1)
    if folder_mode is None or not stat.S_ISDIR(folder_mode):
        raise CommandError(
            f"cannot write {str(path)!r}: there is no such directory", f"make it: `mkdir -p {path.parent}`", 1
        )
    if not os.access(path.parent if mode is None else path, os.W_OK):
        raise CommandError(f"cannot write {str(path)!r}: permission denied", "name another place with `--output`", 1)


def _mode(path: Path) -> int | None:
    """Return the mode of a file, or None if it does not exist; raises OSError if it cannot be determined."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def unwritable(path: Path, error: OSError) -> CommandError:
    """Return the error for a report that cannot be written."""
    why = error.strerror or str(error)
    return CommandError(f"cannot write {str(path)!r}: {why}", "name another place with `--output`", 1)


def cannot_record(parent: Path, error: OSError) -> CommandError:
    """Return the error for a directory in which no recordings can be made."""
    gone = removed_directory()
    if gone is not None and not parent.is_absolute():
        return gone
    what = f"cannot record in {str(parent.absolute())!r}: {error.strerror or error}"
    return CommandError(what, "name another place with `--output`", 1)
