"""The log of one command: a line an event, for ``unsnarl warm logs``.

Invariant: a line holds words and names, never the value of a variable. A full disk stops no command.
"""

from __future__ import annotations

import os
import time


class Log:
    """Appends to the open file that the start has handed over as standard error."""

    def __init__(self, fd: int, command: str) -> None:
        self._fd = fd
        self._command = command

    def write(self, text: str) -> None:
        """Append a line with the time, this process's number and the command."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        line = f"{stamp} {os.getpid()} {self._command}: {text}\n"
        try:
            os.write(self._fd, line.encode(errors="surrogateescape"))
        except OSError:
            pass  # no room on the disk: the commands come first
