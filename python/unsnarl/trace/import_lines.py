"""Tells from the lines of a stack whether a module is being imported. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unsnarl.trace.model import Location

_FILES, _IMPORTS = "<frozen importlib", ("_find_and_load", ".exec_module", ".create_module")
"""The files of the import system, and the ends of the names of functions of it one of which is part of each import.

Programs call others of it directly: `compileall` and `py_compile` compile by `source_to_code`.
"""


def is_importing(lines: Iterable[Location]) -> bool:
    """Tell whether lines are those of an import: of the search for a module, or of its body and what that calls."""
    return any(line.function.endswith(_IMPORTS) and line.file.startswith(_FILES) for line in lines)
