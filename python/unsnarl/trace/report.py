"""Writes the reports on a trace: the page, the Chrome trace, the data and the collapsed stacks.

Invariant: a report file is complete or absent; it is written under a temporary name and renamed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from unsnarl.trace.findings.conclusions import all_findings
from unsnarl.trace.findings.finding import Finding
from unsnarl.trace.model import Process
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.views import chrome, collapsed, data, html, terminal


@dataclass(frozen=True, slots=True)
class Report:
    """A program's processes and the findings about them."""

    processes: list[Process]
    findings: list[Finding]
    syscalls: Syscalls

    def write_page(self, path: Path) -> None:
        """Write the HTML file.

        Raises:
            OSError: it cannot be written.
        """
        write(path, lambda stream: stream.write(html.page(self.processes, self.findings, self.syscalls)))

    def write_chrome(self, path: Path) -> None:
        """Write the trace for Perfetto; raises as ``write_page``."""
        write(path, lambda stream: chrome.write(self.processes, stream))

    def write_data(self, path: Path) -> None:
        """Write the summary as JSON; raises as ``write_page``."""
        write(path, lambda stream: stream.write(data.text(self.processes, self.findings, self.syscalls)))

    def write_collapsed(self, path: Path) -> None:
        """Write the stacks for a flame graph; raises as ``write_page``."""
        write(path, lambda stream: stream.write("".join(f"{line}\n" for line in collapsed.lines(self.processes))))

    def text(self, columns: int | None = None, *, is_coloured: bool = False) -> str:
        """Return the summary for a terminal of so many columns, or for a pipe."""
        return terminal.text(self.processes, self.findings, self.syscalls, columns, is_coloured=is_coloured)


def make(processes: list[Process], syscalls: Syscalls | None = None) -> Report:
    """Return the report on some processes, with the findings about them."""
    return Report(processes, all_findings(processes), syscalls or Syscalls())


def write(path: Path, fill: Callable[[IO[str]], object]) -> None:
    """Write a text file under a temporary name in its directory, and rename it.

    Existing paths that are no regular files (``/dev/stdout``, a pipe) are written to directly.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as stream:
            fill(stream)
        return
    handle, name = tempfile.mkstemp(
        prefix=".unsnarl-", dir=path.parent
    )  # short, since file names have a maximum length
    try:
        with open(handle, "w", encoding="utf-8", errors="replace") as stream:
            fill(stream)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
