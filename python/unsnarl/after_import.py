"""Change a module of the standard library as soon as the program imports it.

Not before: what is imported before the program's first line takes the place of a module
of the program by the same name.

Invariant: a module that is not the standard library's is left as it is; and no module is
imported for any of this.
"""

import os
import sys

from unsnarl.others import ChangingLoader, Others

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STANDARD_LIBRARY = {os.path.realpath(os.path.dirname(os.__file__)), getattr(sys, "_stdlib_dir", None)}
"""Where it is; two places are the same one by two ways."""


class AfterImport:
    """A finder that has others find one module, and sees to it that it is changed once it is loaded.

    Others may have put a finder of theirs around this one (Mercurial's lazy imports do), so
    that it cannot be taken out of ``sys.meta_path`` again: whether it is at work is a flag.
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
        """Leave the module alone if it has not been imported yet."""
        self.is_on = False
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: "Any", target: "Any" = None) -> "Any":
        """Find the module as the others do, and have it changed once it is loaded."""
        if fullname != self.name or not self.is_on:
            return None
        spec = self._others.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and _is_standard(spec.origin, fullname):
            spec.loader = ChangingLoader(_innermost(spec.loader), self._loaded)
        return spec

    def _loaded(self, module: "Any") -> None:
        # A copy that somebody makes for himself is not what others import.
        if self.is_on and sys.modules.get(self.name) is module:
            self.disarm()
            self.change(module)


def _innermost(loader: "Any") -> "Any":
    """Return the loader within LazyLoaders: two around one module make it load for ever."""
    lazy: Any = getattr(sys.modules.get("importlib.util"), "LazyLoader", None)
    inner = loader
    while lazy is not None and type(inner) is lazy:
        inner = inner.__dict__["loader"]
    return inner


def _is_standard(file: str | None, name: str) -> bool:
    """Tell whether a module's file is the standard library's, which is a file or a package."""
    if file is None:
        return False
    folder = os.path.dirname(file)
    if os.path.basename(folder) == name:  # a package
        folder = os.path.dirname(folder)
    return bool(STANDARD_LIBRARY & {folder, os.path.realpath(folder)})
