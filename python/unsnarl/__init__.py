"""A scheduler for the GIL of a stock CPython.

    import unsnarl
    unsnarl.gil.install()

or, without touching the program, ``unsnarl run app.py``.

Invariant: importing this package costs next to nothing and loads no module of the standard library that a bare
interpreter has not loaded. ``unsnarl run`` imports it before the program's first line, and the program may have a
module of the same name as one in the standard library. So everything here is loaded on first use, and ``typing`` is not
imported for ``TYPE_CHECKING``.
"""

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from unsnarl import gil, ipc, sync
    from unsnarl.errors import UnsnarlError, UnsupportedInterpreter
    from unsnarl.patching import patch, unpatch
    from unsnarl.sync import (
        Barrier,
        BinarySemaphore,
        BoundedBinarySemaphore,
        BoundedSemaphore,
        CapacityLimiter,
        Condition,
        CountdownEvent,
        Empty,
        Event,
        Flag,
        Full,
        Latch,
        LifoQueue,
        Lock,
        Once,
        PriorityQueue,
        Queue,
        RBarrier,
        RCapacityLimiter,
        ResourceGuard,
        REvent,
        RLock,
        RWLock,
        Semaphore,
        ShutDown,
        SimpleLifoQueue,
        SimpleQueue,
    )

    __version__: str

__all__ = [
    "Barrier",
    "BinarySemaphore",
    "BoundedBinarySemaphore",
    "BoundedSemaphore",
    "CapacityLimiter",
    "Condition",
    "CountdownEvent",
    "Empty",
    "Event",
    "Flag",
    "Full",
    "Latch",
    "LifoQueue",
    "Lock",
    "Once",
    "PriorityQueue",
    "Queue",
    "RBarrier",
    "RCapacityLimiter",
    "REvent",
    "RLock",
    "RWLock",
    "ResourceGuard",
    "Semaphore",
    "ShutDown",
    "SimpleLifoQueue",
    "SimpleQueue",
    "UnsnarlError",
    "UnsupportedInterpreter",
    "__version__",
    "gil",
    "ipc",
    "patch",
    "sync",
    "unpatch",
]


def _version() -> str:
    """Return the version of the installed distribution, or ``0+source`` if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("unsnarl")
    except PackageNotFoundError:
        return "0+source"


if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a public name on first use."""
        if name in ("gil", "ipc", "sync"):
            # import_module would load importlib; the import statement would look up
            # this attribute first. ``fromlist`` has a name that exists already: any
            # other would be searched for as a submodule.
            return __import__(f"unsnarl.{name}", fromlist=["__name__"])
        if name in ("patch", "unpatch"):
            globals()[name] = function = getattr(__import__("unsnarl.patching", fromlist=["__name__"]), name)
            return function
        if name in ("UnsnarlError", "UnsupportedInterpreter"):
            globals()[name] = error = getattr(__import__("unsnarl.errors", fromlist=["__name__"]), name)
            return error
        if name == "__version__":
            globals()["__version__"] = version = _version()
            return version
        if name in __all__:  # all the others are the primitives
            globals()[name] = primitive = getattr(__import__("unsnarl.sync", fromlist=["__name__"]), name)
            return primitive
        raise AttributeError(f"module 'unsnarl' has no attribute {name!r}")

    def __dir__():
        """List the public names, loaded or not."""
        return sorted({*globals(), *__all__})
