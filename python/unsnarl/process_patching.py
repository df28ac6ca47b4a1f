"""Give multiprocessing's own contexts the primitives of `unsnarl.ipc`.

Invariant: `unpatch()` restores exactly what `patch()` replaced. Patching does not import multiprocessing: a program
that never uses processes pays nothing.
"""

import sys

from unsnarl.after_import import AfterImport

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

_MODULE = "multiprocessing"
_replaced: "dict[str, Any]" = {}
_patched: "list[Any]" = []
"""The module, which other code may have removed from ``sys.modules``."""


def patch() -> None:
    """Replace the primitives of every context, now or when multiprocessing is imported.

    Does nothing in green threads, where `unsnarl.ipc` is refused as the standard library's own primitives are.
    """
    if "unsnarl.green.refusals" not in sys.modules and not _replaced:
        _hook.arm()


def unpatch() -> None:
    """Restore the standard library's primitives."""
    _hook.disarm()
    if not _replaced:
        return
    module = _patched.pop()
    for name, original in _replaced.items():
        setattr(module.context.BaseContext, name, original)
    _bind(module)
    _replaced.clear()


def _replace(module: "Any") -> None:
    from unsnarl.ipc.context import NAMES, primitives

    _patched.append(module)
    base = module.context.BaseContext
    for name in NAMES:
        _replaced[name] = getattr(base, name)
        setattr(base, name, getattr(primitives, name))
    _bind(module)


def _bind(module: "Any") -> None:
    """Bind the module's functions to its default context again."""
    from unsnarl.ipc.context import NAMES

    for name in NAMES:
        setattr(module, name, getattr(module.context._default_context, name))


_hook = AfterImport(_MODULE, _replace)
