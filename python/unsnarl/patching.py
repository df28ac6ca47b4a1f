"""Give a program native primitives without touching it.

`patch()` replaces classes of `threading` and `queue`, and the classes of the contexts of `multiprocessing`, by those
of unsnarl. Modules that are loaded are changed immediately, the others when the program imports them. Objects that
were made, and classes that were imported by name (`from queue import Queue`), before the call are not replaced: call
`patch()` first, or use ``unsnarl run --patch``.

Invariant: `unpatch()` restores exactly what `patch()` replaced.
"""

from unsnarl.after_import import AfterImport

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "threading": ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"),
    "queue": ("Queue", "LifoQueue", "PriorityQueue"),
}
"""The replaced classes: those that the standard library implements in Python. Its `Lock`,
`RLock` and `SimpleQueue` are native."""

_hooks: list[AfterImport] = []
_replaced: "list[tuple[Any, str, Any]]" = []
"""Modules, names and the original classes; the module objects, since a program may remove one from ``sys.modules``."""


def patch() -> None:
    """Replace the classes named in `NAMES`; does nothing the second time, or with ``UNSNARL=off``.

    Raises:
        UnsupportedInterpreter: this is not CPython, or a sub-interpreter.
    """
    from unsnarl import process_patching as processes
    from unsnarl import run_settings

    _check()
    if _hooks or run_settings.is_switched_off():
        return
    processes.patch()
    _hooks.extend(AfterImport(name, _replace) for name in NAMES)
    for hook in _hooks:
        hook.arm()


def _check() -> None:
    from unsnarl import interpreter, subinterpreter

    if not interpreter.is_cpython():
        refusal = f"this is {interpreter.description()}: {interpreter.NO_PATCH}", interpreter.HINT
    elif subinterpreter.is_here():
        refusal = (
            "this is a sub-interpreter: unsnarl's primitives do not work there",
            "patch the main interpreter alone",
        )
    else:
        return
    from unsnarl.errors import UnsupportedInterpreter

    raise UnsupportedInterpreter(*refusal)


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
    """Return whether `patch()` is in force."""
    return bool(_hooks)


def _replace(module: "Any") -> None:
    from unsnarl.sync import standard, subclasses

    if module.__name__ == "queue":
        # Import it now: the queues raise the exceptions of the module that is being changed.
        __import__("unsnarl.sync.errors")
    for name in NAMES[module.__name__]:
        original = getattr(module, name)
        if module.__name__ == "threading":
            subclasses.remember(original)
        _replaced.append((module, name, original))
        setattr(module, name, getattr(standard, name))
