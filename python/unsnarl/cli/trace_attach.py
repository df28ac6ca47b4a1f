"""``unsnarl trace --attach PID``: record a running process for some seconds, then report."""

from __future__ import annotations

import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from unsnarl.cli import trace
from unsnarl.cli.failure import CommandError

if TYPE_CHECKING:
    from unsnarl.cli.trace_arguments import TraceRequest


def attach(request: TraceRequest) -> int:
    """Carry it out.

    Raises:
        CommandError: the process cannot be recorded, or the report not be written.
    """
    from unsnarl.trace import handover
    from unsnarl.trace.attach import NotAttachable, record
    from unsnarl.trace.session import CHUNK_BYTES

    pid = request.attach or 0
    trace.check_places(request)
    _end_in_order()
    owner = handover.other_owner_of(pid)
    # Where reports are written, another user may have no business.
    directory = _make_directory(request.output.parent if owner is None else None)
    is_kept = request.keep
    try:
        record(pid, directory, request.seconds, request.size_mb * 2**20 // CHUNK_BYTES, owner)
        is_kept = True  # until there is a report of it
        status = trace.report_on(request, directory)
        is_kept = request.keep
    except NotAttachable as error:
        raise CommandError(error.reason, error.hint, 1) from None
    except OSError as error:
        raise trace.no_place(directory.parent, error) from None
    except KeyboardInterrupt:
        is_kept = request.keep
        raise
    finally:
        if is_kept and any(directory.glob("*.trace")):
            trace.say_kept(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return status


def _make_directory(beside: Path | None) -> Path:
    """Make a directory that is ours alone, beside the report or among the temporary ones."""
    try:
        beside = Path(tempfile.gettempdir()) if beside is None else beside
        return Path(tempfile.mkdtemp(prefix=".unsnarl-trace-", dir=beside)).resolve()
    except OSError as error:
        raise trace.no_place(beside or Path(), error) from None


def _end_in_order() -> None:
    """Let SIGTERM and SIGHUP end the recording as Ctrl-C does, with a report, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
