"""Import-hook detection: finds at the end of a run whether it has changed how modules are imported, or measured them.

A test runner rewrites the assertions of the modules it imports, a type checker adds its checks, a measurement of
coverage has to see the first line. Modules loaded by such a run must not be imported ahead: the hook would come too
late, and its work would be missing. The same holds for other runs of that command, where an argument may request
the hook. Nothing is therefore learned from any run of such a command.

A hook may be removed before the run ends (pytest removes its own). The loaders stay with their modules and show it.

Invariant: no code of the command is called, except for finders that were in place in the server, and those only with
the name of a module that an unusual loader has loaded.
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

# Entry in the list of loaded modules that marks the whole command; no module has this name.
MARK = "*"
_ORDINARY = (SourceFileLoader, SourcelessFileLoader, ExtensionFileLoader)
_AT_STARTUP: tuple[Any, ...] = (BuiltinImporter, FrozenImporter)
# Modules of tools that measure others; they may have stopped by the end of the run.
_MEASURERS = ("coverage.collector", "_lsprof", "trace")


class Finders:
    """A snapshot of finders and path hooks, before any run has changed them."""

    def __init__(self) -> None:
        self._finders: list[Any] = list(sys.meta_path)
        self._hooks = list(sys.path_hooks)
        self._modules = frozenset(sys.modules)
        self._measurers = [name for name in _MEASURERS if name not in sys.modules]

    def are_hooked(self) -> bool:
        """Return whether the run that ends has used other importers, or has measured modules."""
        news = sys.modules.keys() - self._modules
        return self._has_other_finders() or self._is_measured() or any(map(self._is_hooked, news))

    def _has_other_finders(self) -> bool:
        # As many as before, but others: lazy importers wrap the old ones; the loaders decide then.
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
        """Return whether a module gets this loader in any run, as from an editable installation's finder."""
        parent = sys.modules.get(name.rpartition(".")[0])
        for finder in self._finders:
            spec = finder.find_spec(name, getattr(parent, "__path__", None))
            if spec is not None:
                return type(spec.loader) is kind
        return False
