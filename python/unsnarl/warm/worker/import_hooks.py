"""Tell a run that changes how modules are imported, or measures what they do.

A test runner rewrites the assertions of what it imports, a type checker adds its checks, a
measurement of coverage wants to see the first line. What such a run has loaded must not be
imported ahead for the next one: the hook would come too late, and the modules would be there
without its work. Nor what other runs of that command have loaded, for the hook is asked for
there by an argument, perhaps. So nothing is learned from the runs of such a command.

A hook may be gone when the run ends (pytest takes its own away): then the loaders tell, which
stay with their modules.

Invariant: nothing of the command's is called, but for the finders that its server found in
place, and those only with the name of a module that somebody else's loader has loaded.
"""

from __future__ import annotations

import sys
from importlib.machinery import (
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    SourceFileLoader,
    SourcelessFileLoader,
)

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

# Stands for the command in the list of what its runs have loaded; no module has this name.
MARK = "*"
_ORDINARY = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
_AT_STARTUP: tuple[Any, ...] = (BuiltinImporter, FrozenImporter)
# Modules of tools that look on while other modules run; they may have stopped by the end of the run.
_MEASURERS = ("coverage.collector", "_lsprof", "trace")


class Finders:
    """Hold how modules are found before any run has changed that."""

    def __init__(self) -> None:
        self._finders: list[Any] = list(sys.meta_path)
        self._hooks = list(sys.path_hooks)
        self._modules = frozenset(sys.modules)
        self._measurers = [name for name in _MEASURERS if name not in sys.modules]

    def are_hooked(self) -> bool:
        """Say whether the run that ends has had somebody else in charge of loading modules, or looking on."""
        news = sys.modules.keys() - self._modules
        return self._has_other_finders() or self._is_measured() or any(map(self._is_hooked, news))

    def _has_other_finders(self) -> bool:
        # As many, in the place of the old ones: they are wrapped, as lazy importers do, and loaders are asked.
        now, before = sys.meta_path, self._finders
        is_in_front = len(now) > len(before) and any(a is not b for a, b in zip(now, before, strict=False))
        return is_in_front or list(sys.path_hooks) != self._hooks

    def _is_measured(self) -> bool:
        if any(name in sys.modules for name in self._measurers) or sys.gettrace() or sys.getprofile():
            return True
        monitoring = getattr(sys, "monitoring", None)
        return monitoring is not None and any(monitoring.get_tool(number) for number in range(6))

    def _is_hooked(self, name: str) -> bool:
        names: dict[str, Any] = object.__getattribute__(sys.modules[name], "__dict__")
        spec, file = names.get("__spec__"), names.get("__file__")
        loader: object = getattr(spec, "loader", None)
        if not isinstance(file, str) or getattr(spec, "name", "") != name or loader in _AT_STARTUP:
            return False
        kind: type = type(loader)
        return kind not in _ORDINARY and not self._is_usual(name, kind)

    def _is_usual(self, name: str, kind: type) -> bool:
        """Say whether a module would get this kind of loader without the run: an editable installation has its own."""
        parent = sys.modules.get(name.rpartition(".")[0])
        for finder in self._finders:
            spec = finder.find_spec(name, getattr(parent, "__path__", None))
            if spec is not None:
                return type(spec.loader) is kind
        return False
