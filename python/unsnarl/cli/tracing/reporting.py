"""Writes the requested reports of ``unsnarl trace``. Invariant: all printed text goes to stderr."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unsnarl.cli.failure import CommandError, one_line
from unsnarl.cli.tracing.outputs import unwritable

if TYPE_CHECKING:
    from collections.abc import Callable

    from unsnarl.cli.tracing.arguments import TraceRequest
    from unsnarl.trace.model import Process
    from unsnarl.trace.report import Report
    from unsnarl.trace.running.session import Session
    from unsnarl.trace.running.supervisor import Ending


def report_on_session(request: TraceRequest, session: Session, ending: Ending) -> bool:
    """Write the report of a traced run; print failures, and return False if the report has to be made later."""
    from unsnarl.trace import report
    from unsnarl.trace.recordings import UnreadableTrace

    try:
        found, calls = session.read(ending)
    except UnreadableTrace:
        say("nothing was recorded: the program ended, or executed another one, before its first line")
        return True
    made = report.make(found.processes, calls)
    for name, reason in found.unreadable:
        say(f"left out: {name}: {reason}")
    if found.untraced:
        say(f"{found.untraced} processes were not recorded: the directory was full")
    is_written = True
    try:
        write_all(request, made)
    except CommandError as failure:
        say(str(failure).replace("\n", " · "))
        is_written = False
    _print_summary(made)
    return is_written


def say_kept(directory: Path) -> None:
    """Print the directory of the recordings, and the command that reads them."""
    import shlex

    say(f"recordings: {directory}; `unsnarl trace --read {shlex.quote(str(directory))}` makes a report of them")


def report_on(request: TraceRequest, path: Path) -> int:
    """Write the report on earlier recordings."""
    from unsnarl.trace import report

    made = report.make(read(path))
    write_all(request, made)
    _print_summary(made)
    return 0


def read(path: Path) -> list[Process]:
    """Read earlier recordings, and print which of them were left out.

    Raises:
        CommandError: there is no readable one.
    """
    from unsnarl.trace import recordings

    try:
        found = recordings.read(path)
    except recordings.UnreadableTrace as error:
        raise CommandError(error.reason, error.hint, 1) from None
    for name, reason in found.unreadable:
        say(f"left out: {name}: {reason}")
    return found.processes


def write_all(request: TraceRequest, made: Report) -> None:
    """Write all requested outputs, and print their paths.

    Raises:
        CommandError: an output cannot be written.
    """
    writers = (
        (request.output, made.write_page),
        (request.json_output, made.write_chrome),
        (request.data, made.write_data),
        (request.collapsed, made.write_collapsed),
    )
    for path, writer in writers:
        if path is not None:
            written(path, writer)
    say(f"report: {request.output}   trace for ui.perfetto.dev: {request.json_output}")


def written(path: Path, writer: Callable[[Path], object]) -> None:
    """Write an output.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        writer(path)
    except OSError as error:
        raise unwritable(path, error) from None


def _print_summary(made: Report) -> None:
    if sys.stderr is not None:
        try:
            sys.stderr.write("\n" + made.text(_columns(), is_coloured=_has_colour()))
        except (OSError, ValueError):
            return


def _columns() -> int | None:
    from unsnarl.report import columns

    return columns.known(sys.stderr.fileno())


def _has_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stderr.isatty()


def say(line: str) -> None:
    """Write a line about the command itself to stderr, if there is one."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"unsnarl: {one_line(line)}\n")
        except (OSError, ValueError):
            return
