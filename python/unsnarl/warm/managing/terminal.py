"""A terminal for the imports of a learning run, whose standard streams must be of the caller's kinds.

Invariant: the imports never wait for a reader.
"""

from __future__ import annotations

import os
import threading

from unsnarl.warm.importing import preload


class Terminal:
    """A terminal for the imports, whose output is read by a thread: without a reader they would block."""

    def __init__(self, size: str) -> None:
        self._master, self.slave = os.openpty()
        preload.set_size(self.slave, size)
        self._shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 4096):
                self._shown += data
        except OSError:
            pass  # no process has the other side open

    def close(self) -> str:
        """Close it; return the output."""
        os.close(self.slave)
        self._reader.join(1)  # a process left behind may hold it: the output so far counts
        return self._shown.decode(errors="replace")
