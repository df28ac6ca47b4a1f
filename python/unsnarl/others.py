"""For finders that know where a module is as the others do, and change how it is loaded.

Invariant: nothing is imported for it. Others may have put a finder of theirs around the one
that asks (Mercurial's lazy imports do); asked again while it asks, it knows nothing.
"""

import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Others:
    """All finders but one."""

    def __init__(self, asking: object) -> None:
        """Begin for the finder that asks."""
        self._asking = asking
        self._asked: set[str] = set()

    def find_spec(self, fullname: str, path: "Any", target: "Any") -> "Any":
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


class ChangingLoader:
    """Load a module as its own loader does, then change it; until then, be that loader in all but this."""

    def __init__(self, loader: "Any", change: "Callable[[Any], None]") -> None:
        self._loader = loader
        self._change = change

    def __getattr__(self, name: str) -> "Any":
        """Answer what tools ask a loader for, ``get_source`` for instance."""
        if name.startswith("__") or name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: "Any") -> "Any":
        """Leave that to the loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        """Run the module with a spec that knows nothing of us, and change it."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._change(module)


class ChangingFinder:
    """Find some modules where the other finders do, and have each of them changed when it is loaded; once is enough."""

    def __init__(
        self, names: "Iterable[str]", change: "Callable[[Any], None]", is_meant: "Callable[[Any], bool] | None" = None
    ) -> None:
        """Begin for these modules; ``is_meant`` says by its spec whether one is what is looked for."""
        self._waiting = set(names)
        self._change = change
        self._is_meant = is_meant
        self._others = Others(self)

    def find_spec(self, fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Return the spec of a module that is still to be changed; nothing is imported for it."""
        if fullname not in self._waiting:
            return None
        spec = self._others.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and (self._is_meant is None or self._is_meant(spec)):
            spec.loader = ChangingLoader(spec.loader, self._loaded)
        return spec

    def _loaded(self, module: "Any") -> None:
        self._waiting.discard(module.__name__)
        self._change(module)
