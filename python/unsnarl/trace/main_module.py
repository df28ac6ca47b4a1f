"""Finds the lines of a program that is a module of the standard library, as with ``python -m venv``. Pure."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unsnarl.trace.model import Location

_RUNS, _RUN_BY = "<module>", ("<frozen runpy>", "_run_code")
"""The function of a module's own code, and the file and the function that call that of the main module."""


def innermost_line(lines: list[Location]) -> Location | None:
    """Return the innermost line of the module that `python -m` runs, or of its package; None without such a module.

    ``lines`` are those of a stack, the innermost first.
    """
    mains = (
        line for line, by in itertools.pairwise(lines) if line.function == _RUNS and (by.file, by.function) == _RUN_BY
    )
    main = next(mains, None)
    if main is None:
        return None
    directory, name = os.path.split(main.file)
    package = directory + os.sep if name == "__main__.py" else None
    return next(line for line in lines if line.file == main.file or (package and line.file.startswith(package)))
