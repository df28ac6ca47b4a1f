"""``unsnarl trace --compare A B``: reads two recordings, writes the page, and prints what got worse and better."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show
from unsnarl.cli.tracing.outputs import check_path
from unsnarl.cli.tracing.reporting import read, say, written

if TYPE_CHECKING:
    from pathlib import Path

    from unsnarl.cli.tracing.arguments import TraceRequest


def compare(request: TraceRequest, before: Path, after: Path) -> int:
    """Compare two recordings; the result goes to stdout, the page and the data to files.

    Raises:
        CommandError: a recording cannot be read, both are the same, or an output cannot be written.
    """
    if _is_same(before, after):
        raise CommandError(f"both recordings are {str(before)!r}: nothing can differ", "name two recordings")
    for path in (request.output, request.data):
        if path is not None:
            check_path(path)
    from unsnarl.report import columns
    from unsnarl.trace.comparing import data, page, text
    from unsnarl.trace.comparing.comparison import compare as compared
    from unsnarl.trace.report import write

    made = compared(read(before), read(after))
    written(request.output, lambda path: write(path, lambda stream: stream.write(page.page(made))))
    if request.data is not None:
        written(request.data, lambda path: write(path, lambda stream: stream.write(data.text(made))))
    say(f"page: {request.output}")
    return show(text.text(made, columns.known(1)))


def _is_same(before: Path, after: Path) -> bool:
    try:
        return before.samefile(after)
    except OSError:  # reading says which one is missing
        return False
