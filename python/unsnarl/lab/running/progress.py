"""The progress of a session on stderr: a moving line with the remaining time, or plain lines off a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from unsnarl.lab.experiment import Figures
from unsnarl.lab.running.plan import Planned
from unsnarl.lab.running.runner import Session


class ProgressLine:
    """A progress line of some runs; a context manager."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        """Prepare the line for ``sessions``; nothing is shown before entering."""
        runs = [item for session in sessions for item in session.runs]
        self._expected_s = sum(item.run.case.expected_s for item in runs)
        self._count = len(runs)
        self._done = 0
        self._began_s = time.monotonic()
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if self._console.is_terminal:
            columns = (BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(compact=True))
            text = TextColumn("{task.description}", markup=False)
            self._bar = Progress(*columns, text, console=self._console, transient=True)

    def __enter__(self) -> Self:
        """Show the line."""
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._expected_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the moving line."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, item: Planned, outcome: Figures | str) -> None:
        """Show that a run is done: on a terminal in the moving line, elsewhere in a new line."""
        self._done += 1
        run = item.run
        words = f"{run.experiment.name}: {run.case.name}, pair {item.pair + 1}, {run.variant.name}"
        if self._bar is not None:
            self._bar.update(self._task, advance=run.case.expected_s, description=words)
            if isinstance(outcome, str):
                self._bar.print(f"{words}: {outcome}", markup=False)
            return
        shown = outcome if isinstance(outcome, str) else headline(run.experiment.figures[0].name, outcome)
        elapsed_s = time.monotonic() - self._began_s
        print(f"{elapsed_s:4.0f} s  {self._done}/{self._count}  {words}: {shown}", file=sys.stderr, flush=True)


def headline(main: str, figures: Figures) -> str:
    """Return the most important figure of a run in words."""
    name = main if main in figures else "calls.futex" if "calls.futex" in figures else next(iter(figures), "")
    return f"{name} {figures[name]:.4g}" if name else "no figures"
