"""``unsnarl trace --attach PID``: record a running process for some seconds, then report."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

from unsnarl.cli import trace
from unsnarl.cli.failure import CommandError
from unsnarl.cli.trace_arguments import TraceRequest


def attach(request: TraceRequest) -> int:
    """Carry it out.

    Raises:
        CommandError: the process cannot be recorded, or the report not be written.
    """
    from unsnarl.trace.attach import NotAttachable, record
    from unsnarl.trace.session import CHUNK_BYTES

    pid = request.attach or 0
    trace.check_places(request)
    directory = Path(tempfile.mkdtemp(prefix=".unsnarl-trace-", dir=request.output.parent)).resolve()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the recording, too, and reports
    try:
        _hand_over(directory, pid)
        record(pid, directory, request.seconds, request.size_mb * 2**20 // CHUNK_BYTES)
        return trace.report_on(request, directory)
    except NotAttachable as error:
        raise CommandError(error.reason, error.hint, 1) from None
    finally:
        if not request.keep:
            shutil.rmtree(directory, ignore_errors=True)


def _hand_over(directory: Path, pid: int) -> None:
    """Give the directory to the user of the process, who is to write there, if that is another."""
    try:
        owner = os.stat(f"/proc/{pid}")
        if owner.st_uid != os.getuid():
            os.chown(directory, owner.st_uid, owner.st_gid)
    except OSError:
        return  # it cannot be reached either, and that is said
