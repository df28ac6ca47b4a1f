"""A measured process with a line protocol, which runs while another process is measured.

Invariant: no process of it survives the ``with`` block or the death of this process, even by SIGKILL;
every failure is a ``RunFailed`` that names the process and the cause.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from unsnarl.demo.child import Child as LineChild
from unsnarl.demo.child import ChildError
from unsnarl.lab.experiment import Confinement, Figures
from unsnarl.lab.running.process import RunFailed, confined, environment, printed_figures


class Child:
    """A process with its stdin and stdout on pipes, under a case's confinement."""

    def __init__(self, name: str, command: Sequence[str], confinement: Confinement) -> None:
        """Start the process from the path of its program and its arguments.

        Raises:
            RunFailed: the process cannot be started.
        """
        if not os.access(command[0], os.X_OK):
            raise RunFailed(f"the {name} cannot be started: there is no {command[0]}")
        try:
            self._child = LineChild(name, confined(command, confinement, is_bound=True), environment())
        except OSError as error:
            raise RunFailed(f"the {name} cannot be started: {error.strerror}") from None

    def __enter__(self) -> Self:
        """Return the process itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the process, and turn its failures into failures of the run."""
        self._child.__exit__(kind, error, traceback)
        if isinstance(error, ChildError):
            raise RunFailed(str(error)) from None

    def receive(self, timeout_s: float) -> str:
        """Return the process's next line."""
        return self._child.receive(timeout_s)

    def expect(self, word: str, timeout_s: float) -> None:
        """Wait for a line that must be ``word``."""
        self._child.expect(word, timeout_s)

    def receive_figures(self, timeout_s: float) -> Figures:
        """Return the figures in the process's next line."""
        return printed_figures(self.receive(timeout_s))

    def request(self, line: str, timeout_s: float) -> Figures:
        """Send a line and return the figures of the answer."""
        self._child.send(line)
        return self.receive_figures(timeout_s)
