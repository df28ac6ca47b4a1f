"""Give multiprocessing's own contexts the primitives of `unsnarl.ipc`.

Invariant: `unpatch()` puts back exactly what `patch()` replaced; multiprocessing is not
imported for it: a program that never uses processes pays nothing.
"""

from __future__ import annotations

import sys
from typing import Any

_MODULE = "multiprocessing"
_replaced: dict[str, Any] = {}


class _AfterImport:
    """Patch multiprocessing when the program imports it.

    Others may have put a finder of theirs around this one (Mercurial's lazy imports do), so
    that it cannot be taken out of ``sys.meta_path`` again: whether it is at work is a flag.
    """

    def __init__(self) -> None:
        self.is_on = False

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> Any:
        """Find multiprocessing as the others do, and have it patched once it is loaded."""
        if fullname != _MODULE or not self.is_on:
            return None
        from importlib.util import LazyLoader, find_spec

        self.is_on = False
        try:
            spec: Any = find_spec(_MODULE)
        finally:
            self.is_on = True
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            while isinstance(loader, LazyLoader):  # two around one module make it load for ever
                loader = vars(loader)["loader"]
            spec.loader = _PatchingLoader(loader)
        return spec


class _PatchingLoader:
    """Load a module as its own loader does, then patch it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        """Leave that to the loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run the module, and patch it."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        if _hook.is_on:
            _unhook()
            _replace(module)


_hook: Any = _AfterImport()


def patch() -> None:
    """Replace the primitives of every context, now or when multiprocessing is imported."""
    module = sys.modules.get(_MODULE)
    if module is not None:
        if not _replaced:
            _replace(module)
    elif not _hook.is_on:
        _hook.is_on = True
        sys.meta_path.insert(0, _hook)


def unpatch() -> None:
    """Put the standard library's primitives back."""
    _unhook()
    if not _replaced:
        return
    module: Any = sys.modules[_MODULE]
    for name, original in _replaced.items():
        setattr(module.context.BaseContext, name, original)
    _bind(module)
    _replaced.clear()


def _unhook() -> None:
    _hook.is_on = False
    if _hook in sys.meta_path:
        sys.meta_path.remove(_hook)


def _replace(module: Any) -> None:
    from unsnarl.ipc.context import NAMES, primitives

    base = module.context.BaseContext
    for name in NAMES:
        _replaced[name] = getattr(base, name)
        setattr(base, name, getattr(primitives, name))
    _bind(module)


def _bind(module: Any) -> None:
    """Make the module's functions those of its default context again."""
    from unsnarl.ipc.context import NAMES

    for name in NAMES:
        setattr(module, name, getattr(module.context._default_context, name))
