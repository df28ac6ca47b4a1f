"""Import finders that find a module through all other finders, and change how the module is loaded.

Invariants: nothing is imported to find a module. A program may wrap the calling finder in a finder of its own
(Mercurial's lazy imports do): a call that arrives while the same module is being searched for returns nothing.
"""

import sys

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Others:
    """All finders on ``sys.meta_path`` but one."""

    def __init__(self, asking: object) -> None:
        """Exclude the calling finder."""
        self._asking = asking
        self._asked: set[str] = set()

    def find_spec(self, fullname: str, path: "Any", target: "Any") -> "Any":
        """Return the spec of the first finder that finds the module."""
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


class ChangingLoader:
    """Loads a module through its original loader, then changes it; delegates all else to the original loader."""

    def __init__(self, loader: "Any", change: "Callable[[Any], None]") -> None:
        self._loader = loader
        self._change = change

    def __getattr__(self, name: str) -> "Any":
        """Delegate attributes that tools use, ``get_source`` for instance."""
        if name.startswith("__") or name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: "Any") -> "Any":
        """Delegate to the original loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        """Restore the original loader in the module's attributes, run the module, and change it."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._change(module)


class ChangingFinder:
    """Finds some modules through the other finders, and changes each of them once, when it is loaded."""

    def __init__(
        self, names: "Iterable[str]", change: "Callable[[Any], None]", is_meant: "Callable[[Any], bool] | None" = None
    ) -> None:
        """Take the modules' names; ``is_meant`` decides by the spec whether a module found is the one to change."""
        self._waiting = set(names)
        self._change = change
        self._is_meant = is_meant
        self._others = Others(self)

    def find_spec(self, fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Return the spec of a module that has not been changed yet; nothing is imported."""
        if fullname not in self._waiting:
            return None
        spec = self._others.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and (self._is_meant is None or self._is_meant(spec)):
            spec.loader = ChangingLoader(spec.loader, self._loaded)
        return spec

    def _loaded(self, module: "Any") -> None:
        self._waiting.discard(module.__name__)
        self._change(module)
