"""Give a program native primitives without touching it.

`patch()` replaces classes of `threading` and `queue` by ours, and what the contexts of
`multiprocessing` make. What was made, or
imported by name (`from queue import Queue`), before the call stays as it is, so
call it first thing, or use ``unsnarl run --patch``.

Invariant: `unpatch()` puts back exactly what `patch()` replaced.
"""

from __future__ import annotations

from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "threading": ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"),
    "queue": ("Queue", "LifoQueue", "PriorityQueue"),
}
"""What is replaced: classes that the standard library writes in Python. `Lock`,
`RLock` and `SimpleQueue` are native there already."""

_replaced: dict[tuple[str, str], Any] = {}


def patch() -> None:
    """Replace the classes named in `NAMES`; does nothing the second time, or with ``UNSNARL=off``."""
    from unsnarl import run_settings

    if _replaced or run_settings.is_switched_off():
        return
    from importlib import import_module

    from unsnarl import process_patching as processes
    from unsnarl import sync

    processes.patch()
    for module_name, names in NAMES.items():
        module = import_module(module_name)
        for name in names:
            _replaced[module_name, name] = getattr(module, name)
            setattr(module, name, getattr(sync, name))


def unpatch() -> None:
    """Put the standard library's classes back."""
    from importlib import import_module

    if _replaced:
        from unsnarl import process_patching as processes

        processes.unpatch()
    while _replaced:
        (module_name, name), original = _replaced.popitem()
        setattr(import_module(module_name), name, original)


def is_patched() -> bool:
    """Tell whether `patch()` is in force."""
    return bool(_replaced)
