"""A child process with a line protocol on its stdin and stdout, and a timeout for each line.

Invariant: however the ``with`` block ends, no process remains, including the child's own children,
which share its process group. Ctrl-C reaches the parent alone, since that group is not in the
terminal's foreground.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from unsnarl.errors import UnsnarlError


class ChildError(UnsnarlError):
    """A child process ended, timed out, or sent an unexpected line."""


class SilentChildError(ChildError):
    """A child process sent no line in time: it hangs, or the machine is too busy for it."""


class Child:
    """A child process with its stdin and stdout on pipes."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start ``command``; ``name`` is for error messages."""
        self._name = name
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._pending = b""
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env=dict(environment),
                bufsize=0,
                process_group=0,
            )
        except OSError:
            self._complaints.close()
            raise

    @property
    def pid(self) -> int:
        """The child's process id, which is its process group's too."""
        return self._process.pid

    def __enter__(self) -> Self:
        """Return the child itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kill the child's whole process group and wait for the child."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the whole group has ended already
        with self._process:
            self._complaints.close()

    def send(self, line: str) -> None:
        """Write one line to the child.

        Raises:
            ChildError: the child has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            raise self._failure("ended early") from None

    def receive(self, timeout_s: float) -> str:
        """Return the child's next line; wait at most ``timeout_s`` seconds for it.

        Raises:
            SilentChildError: the timeout elapsed.
            ChildError: the child ended first.
        """
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        until_s = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            readable, _, _ = select.select([fd], [], [], max(0.0, until_s - time.monotonic()))
            if not readable:
                raise SilentChildError(str(self._failure(f"sent nothing for {timeout_s:g} s")))
            data = os.read(fd, 65536)
            if not data:
                raise self._failure("ended early")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()

    def expect(self, word: str, timeout_s: float) -> None:
        """Wait for a line that must be ``word``.

        Raises:
            ChildError: the line differs, or there is none.
        """
        line = self.receive(timeout_s)
        if line != word:
            raise self._failure(f"sent {line!r} instead of {word!r}")

    def _failure(self, what: str) -> ChildError:
        """Return the exception for ``what``, with the child's last line on stderr."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ChildError(f"the {self._name} {what}" + (f": {last}" if last else ""))
