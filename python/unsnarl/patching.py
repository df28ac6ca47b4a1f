"""Give a program native primitives without touching it.

`patch()` replaces classes of `threading` and `queue` by ours, and what the contexts of
`multiprocessing` make: at once, or when the program imports these modules. What was made, or
imported by name (`from queue import Queue`), before the call stays as it is, so
call it first thing, or use ``unsnarl run --patch``.

Invariant: `unpatch()` puts back exactly what `patch()` replaced.
"""

from unsnarl.after_import import AfterImport

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "threading": ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"),
    "queue": ("Queue", "LifoQueue", "PriorityQueue"),
}
"""What is replaced: classes that the standard library writes in Python. `Lock`,
`RLock` and `SimpleQueue` are native there already."""

_hooks: list[AfterImport] = []
_replaced: "list[tuple[Any, str, Any]]" = []
"""Modules, names and what had them: these very modules, which others may have taken out of ``sys.modules``."""


def patch() -> None:
    """Replace the classes named in `NAMES`; does nothing the second time, or with ``UNSNARL=off``."""
    from unsnarl import process_patching as processes
    from unsnarl import run_settings

    if _hooks or run_settings.is_switched_off():
        return
    processes.patch()
    _hooks.extend(AfterImport(name, _replace) for name in NAMES)
    for hook in _hooks:
        hook.arm()


def unpatch() -> None:
    """Put the standard library's classes back."""
    from unsnarl import process_patching as processes

    if _hooks:
        processes.unpatch()
    while _hooks:
        _hooks.pop().disarm()
    while _replaced:
        module, name, original = _replaced.pop()
        setattr(module, name, original)


def is_patched() -> bool:
    """Tell whether `patch()` is in force."""
    return bool(_hooks)


def _replace(module: "Any") -> None:
    from unsnarl.sync import standard

    if module.__name__ == "queue":
        # Now: ours raise the errors of the very module that is changed.
        __import__("unsnarl.sync.errors")
    for name in NAMES[module.__name__]:
        _replaced.append((module, name, getattr(module, name)))
        setattr(module, name, getattr(standard, name))
