"""The figures of a finished demonstration as text, as JSON and as a picture."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from unsnarl.demo import picture, table
from unsnarl.demo.comparison import compare
from unsnarl.demo.measurement import Plan, Window


class Report:
    """The comparisons of a measured plan, in three formats."""

    def __init__(self, plan: Plan, windows: Sequence[Window]) -> None:
        """Compare the ``windows`` that were measured by ``plan``."""
        self._plan = plan
        self._windows = windows
        self._comparisons = compare(windows)

    def where(self) -> str:
        """Return the interpreter and the number of cores in words."""
        cores = len(os.sched_getaffinity(0))
        name, version = platform.python_implementation(), platform.python_version()
        return f"{name} {version}, {cores} core{'s' if cores != 1 else ''}"

    def title(self) -> str:
        """Return the title of table and picture."""
        threads = self._plan.hogs
        company = f"next to {threads} CPU-bound thread{'s' if threads != 1 else ''}"
        return f"A threaded web server {company if threads else 'alone'}"

    def text(self) -> str:
        """Return the table, coloured if stdout is a terminal."""
        console = Console()
        with console.capture() as capture:
            console.print(table.table_of(self._comparisons, self.title(), console.width))
            console.print(Text(table.caption(self._comparisons, self.where(), self._plan.pairs), style="dim italic"))
        return capture.get()

    def json(self) -> str:
        """Return the table's figures, and every single window, as JSON."""
        document = {
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "cpu_bound_threads": self._plan.hogs,
            "pairs": self._plan.pairs,
            "window_s": self._plan.window_s,
            "comparisons": [comparison.as_json() for comparison in self._comparisons],
            "windows": [window._asdict() for window in self._windows],
        }
        return json.dumps(document, indent=1) + "\n"

    def svg(self) -> str:
        """Return the picture."""
        return picture.draw(self._comparisons, self.title(), self.where(), self._plan.pairs)
