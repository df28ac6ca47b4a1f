"""The progress of a measurement, on stderr: a moving line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from unsnarl.demo.measurement import Plan, Window


class ProgressLine:
    """A progress line of a plan; a context manager."""

    def __init__(self, plan: Plan) -> None:
        """Prepare the line for ``plan``; nothing is shown before entering."""
        self._plan = plan
        self._done = 0
        self._began_s = time.monotonic()
        self._bar: Progress | None = None
        self._task = TaskID(0)
        console = Console(stderr=True)
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(compact=True))
            self._bar = Progress(*columns, console=console, transient=True)

    def __enter__(self) -> Self:
        """Show the line."""
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("starting the servers", total=self._plan.window_count())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the moving line."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, window: Window) -> None:
        """Show that ``window`` is measured; off a terminal, print one line at the end of each pair."""
        self._done += 1
        where = f"pair {window.pair + 1} of {self._plan.pairs}"
        what = f"{window.kind}, {window.connections} connections, {window.variant}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=f"{where}: {what}")
        elif self._done % (self._plan.window_count() // self._plan.pairs) == 0:
            elapsed_s = time.monotonic() - self._began_s
            print(f"{where} measured, {elapsed_s:.0f} s", file=sys.stderr, flush=True)
