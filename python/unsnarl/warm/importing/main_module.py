"""The program's ``__main__``: one module object, from before the imports until the program has run in it.

A module that imports ``__main__`` keeps the object, and may query ``__file__`` while it is imported. So learning run
and server put the program's module in place of the launcher's before they import anything, and the worker runs the
program in that very module.

Must never be replaced later. The names of the program itself appear only when the program runs: an import that needs
one of them fails here, and is left to the runs.

Invariant: when the program starts, the module has the names that this interpreter sets, in the same order, and those
that imports have added.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder, SourceFileLoader

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .preload import Command

# CPython 3.15 has given up the module attribute `__cached__`, and runpy sets it no more.
_HAS_CACHED = sys.version_info < (3, 15)
# Set by runpy once it has found the module to run.
_RUNPYS = ("__file__", "__cached__")
_REPLACED = ("__loader__", "__package__", "__spec__")


class MainModule:
    """The module that the program runs in."""

    def __init__(self, command: Command) -> None:
        """Take the launcher's place in ``sys.modules``."""
        self._command = command
        # Kept alive: its frame, the bottom of the stack, uses its names.
        self._launcher = sys.modules["__main__"]
        self._module = _named_as(self._launcher, command)
        self._given = {name: self.names[name] for name in _REPLACED if name in self.names}
        sys.modules["__main__"] = self._module

    @property
    def names(self) -> dict[str, Any]:
        """The module's namespace."""
        return self._module.__dict__

    def announce(self) -> None:
        """For ``python -m`` and archives: set the names that runpy sets, once the module's package is there."""
        package = self._command.name.rpartition(".")[0] if self._command.kind == "module" else ""
        if _is_file(self._command) or "__file__" in self.names or (package and package not in sys.modules):
            return
        from importlib.util import find_spec

        try:
            if self._command.is_on_path:
                spec = PathFinder.find_spec("__main__", [self._command.name])
            else:
                spec = find_spec(self._command.name)
            if spec is not None and spec.submodule_search_locations is not None:
                if self._command.name not in sys.modules:
                    return
                spec = find_spec(self._command.name + ".__main__")
        except (ImportError, AttributeError, ValueError):
            return
        if spec is not None and spec.has_location:
            self.names["__file__"] = spec.origin
            if _HAS_CACHED:
                self.names["__cached__"] = spec.cached
            self.names.update(
                __loader__=spec.loader,
                __package__=spec.parent,
                __spec__=spec,
            )

    def begin(self) -> None:
        """Restore the state before the program: runpy sets its names again."""
        if not _is_file(self._command):
            for name in _RUNPYS:
                self.names.pop(name, None)
            self.names.update(self._given)


def _is_file(command: Command) -> bool:
    """Return whether the program is a file that the interpreter runs without runpy."""
    return command.kind == "script" and not command.is_on_path


def _named_as(launcher: ModuleType, command: Command) -> ModuleType:
    module = type(sys)("__main__")
    names = module.__dict__
    names.clear()
    names.update((name, value) for name, value in launcher.__dict__.items() if name.startswith("__"))
    names["__doc__"] = None
    if "__annotations__" in names:
        names["__annotations__"] = {}
    if _is_file(command):
        names.update(__file__=command.name, __loader__=SourceFileLoader("__main__", command.name))
    else:
        for name in _RUNPYS:
            names.pop(name, None)
    return module
