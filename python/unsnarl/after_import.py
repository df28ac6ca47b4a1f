"""A finder that changes a module of the standard library when the program imports it, and not earlier.

A module that is imported before the program's first line would take the place of a module of the program by the same
name.

Invariant: only modules of the standard library are changed, and no module is imported for this purpose.
"""

import os
import sys

from unsnarl.others import ChangingLoader, Others

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STANDARD_LIBRARY = {os.path.realpath(os.path.dirname(os.__file__)), getattr(sys, "_stdlib_dir", None)}
"""Its directory, by both of its possible names."""


class AfterImport:
    """Finds one module through the other finders, and changes it after it is loaded.

    A program may wrap this finder in one of its own (Mercurial's lazy imports do), and this one can then not be
    removed from ``sys.meta_path``. So a flag decides whether it is active.
    """

    def __init__(self, name: str, change: "Callable[[Any], None]") -> None:
        self.name = name
        self.change = change
        self.is_on = False
        self._others = Others(self)

    def arm(self) -> None:
        """Change the module, now or when it is imported."""
        module = sys.modules.get(self.name)
        if module is not None:
            if _is_standard(getattr(module, "__file__", None), self.name):
                self.change(module)
        elif not self.is_on:
            self.is_on = True
            sys.meta_path.insert(0, self)

    def disarm(self) -> None:
        """Do not change the module if it has not been imported yet."""
        self.is_on = False
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: "Any", target: "Any" = None) -> "Any":
        """Return the spec from the other finders, with a loader that changes the module after loading it."""
        if fullname != self.name or not self.is_on:
            return None
        spec = self._others.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and _is_standard(spec.origin, fullname):
            spec.loader = ChangingLoader(_innermost(spec.loader), self._loaded)
        return spec

    def _loaded(self, module: "Any") -> None:
        # Code may load a private copy of the module, which other imports do not get.
        if self.is_on and sys.modules.get(self.name) is module:
            self.disarm()
            self.change(module)


def _innermost(loader: "Any") -> "Any":
    """Return the loader inside LazyLoaders: two of them around one module would load it in an endless recursion."""
    lazy: Any = getattr(sys.modules.get("importlib.util"), "LazyLoader", None)
    inner = loader
    while lazy is not None and type(inner) is lazy:
        inner = inner.__dict__["loader"]
    return inner


def _is_standard(file: str | None, name: str) -> bool:
    """Return whether a module's file, or its package, belongs to the standard library."""
    if file is None:
        return False
    folder = os.path.dirname(file)
    if os.path.basename(folder) == name:  # a package
        folder = os.path.dirname(folder)
    return bool(STANDARD_LIBRARY & {folder, os.path.realpath(folder)})
