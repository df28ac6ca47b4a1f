"""A finder that asks the others: it knows where a module is as they do, and changes how it is loaded.

Invariant: others may have put a finder of theirs around this one (Mercurial's lazy imports
do); asked again while it asks, it knows nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Others:
    """All finders but one."""

    def __init__(self, asking: object) -> None:
        """Begin for the finder that asks."""
        self._asking = asking
        self._asked: set[str] = set()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        """Return the spec of the first that knows a module."""
        if fullname in self._asked:
            return None
        self._asked.add(fullname)
        try:
            finders: list[Any] = [finder for finder in sys.meta_path if finder is not self._asking]
            finds = (getattr(finder, "find_spec", None) for finder in finders)
            found = (find(fullname, path, target) for find in finds if find is not None)
            return next((spec for spec in found if spec is not None), None)
        finally:
            self._asked.discard(fullname)
