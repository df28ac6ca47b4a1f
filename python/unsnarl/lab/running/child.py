"""A measured process that goes on while another one is measured: it talks in lines.

Invariant: leaving the ``with`` block leaves no process of it behind, nor does the death
of this process, even by SIGKILL; whatever goes wrong is a ``RunFailed`` that says what
and by whom.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from unsnarl.demo.child import Child as Talker
from unsnarl.demo.child import ChildError
from unsnarl.lab.experiment import Confinement, Figures
from unsnarl.lab.running.process import RunFailed, confined, environment, printed_figures


class Child:
    """A process with its stdin and stdout on pipes, confined as a case says."""

    def __init__(self, name: str, command: Sequence[str], confinement: Confinement) -> None:
        """Start it, given the path of its program and its arguments.

        Raises:
            RunFailed: it cannot be started.
        """
        if not os.access(command[0], os.X_OK):
            raise RunFailed(f"the {name} cannot be started: there is no {command[0]}")
        try:
            self._talker = Talker(name, confined(command, confinement, is_bound=True), environment())
        except OSError as error:
            raise RunFailed(f"the {name} cannot be started: {error.strerror}") from None

    def __enter__(self) -> Self:
        """Return the process itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it, and turn its failures into those of the run."""
        self._talker.__exit__(kind, error, traceback)
        if isinstance(error, ChildError):
            raise RunFailed(str(error)) from None

    def receive(self, timeout_s: float) -> str:
        """Return its next line."""
        return self._talker.receive(timeout_s)

    def expect(self, word: str, timeout_s: float) -> None:
        """Wait for a line that must be ``word``."""
        self._talker.expect(word, timeout_s)

    def receive_figures(self, timeout_s: float) -> Figures:
        """Return its next line, which is figures."""
        return printed_figures(self.receive(timeout_s))

    def request(self, line: str, timeout_s: float) -> Figures:
        """Say a line and return the figures that it answers with."""
        self._talker.send(line)
        return self.receive_figures(timeout_s)
