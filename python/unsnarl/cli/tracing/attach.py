"""``unsnarl trace --attach PID``: records a running process for some seconds, then reports."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from unsnarl.cli import ending
from unsnarl.cli.failure import CommandError
from unsnarl.cli.tracing.outputs import cannot_record, check_writable
from unsnarl.cli.tracing.reporting import report_on, say_kept

if TYPE_CHECKING:
    from unsnarl.cli.tracing.arguments import TraceRequest
    from unsnarl.trace.running.handover import Owner


def attach(request: TraceRequest) -> int:
    """Record the process and write the report; SIGTERM, SIGHUP and Ctrl-C end the recording early.

    Raises:
        CommandError: the process cannot be recorded, or the report cannot be written.
    """
    check_writable(request)
    with ending.as_interrupt():
        return _attach(request)


def _attach(request: TraceRequest) -> int:
    from unsnarl.trace.running import handover

    owner = handover.other_owner_of(request.attach or 0)
    # Another user may have no access to the directory of the report.
    directory = _make_directory(request.output.parent if owner is None else None)
    is_kept = True
    try:
        _record(request, directory, owner)
        status = report_on(request, directory)
        is_kept = request.keep
    except KeyboardInterrupt:
        is_kept = request.keep
        raise
    finally:
        if is_kept and any(directory.glob("*.trace")):
            say_kept(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return status


def _record(request: TraceRequest, directory: Path, owner: Owner | None) -> None:
    from unsnarl.trace.running.attach import NotAttachable, record
    from unsnarl.trace.running.session import CHUNK_BYTES

    try:
        record(request.attach or 0, directory, request.seconds, request.size_mb * 2**20 // CHUNK_BYTES, owner)
    except NotAttachable as error:
        raise CommandError(error.reason, error.hint, 1) from None
    except OSError as error:
        raise cannot_record(directory.parent, error) from None


def _make_directory(parent: Path | None) -> Path:
    """Create a private directory next to the report, or in the directory for temporary files."""
    try:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        return Path(tempfile.mkdtemp(prefix=".unsnarl-trace-", dir=parent)).resolve()
    except OSError as error:
        raise cannot_record(parent or Path(), error) from None
