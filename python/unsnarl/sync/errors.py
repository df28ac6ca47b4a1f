"""The exceptions of the queues: those of the standard library, and replacements where it lacks one.

Invariant: `except queue.Empty` and `except queue.Full` catch them, and so does `except queue.ShutDown` where it exists
(CPython 3.13+). If a `queue.py` of the program hides the standard library's, `Full` and `ShutDown` are classes of
`unsnarl` alone. If a program has put a class of its own in the place of one, what is raised is caught as either.
"""

import sys
from functools import lru_cache

__all__ = ["Empty", "Full", "ShutDown"]

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from queue import Empty, Full

    if sys.version_info >= (3, 13):
        from queue import ShutDown
    else:

        class ShutDown(Exception):  # noqa: N818 - the standard library's name
            """Raised by `put` and `get` when the queue was shut down."""
else:
    try:
        import queue as standard
        from queue import Empty, Full
    except ImportError:
        from _queue import Empty

        standard = sys.modules["_queue"]

        class Full(Exception):  # noqa: N818 - the standard library's name
            """Raised by `put` when there is no room."""

    try:
        from queue import ShutDown
    except ImportError:

        class ShutDown(Exception):  # noqa: N818 - the standard library's name
            """Raised by `put` and `get` when the queue was shut down."""


@lru_cache(maxsize=16)
def joined(own: type[Exception], current: object) -> type[BaseException]:
    """Return a class that is caught as either; the first one if the second is no class of exceptions."""
    if not isinstance(current, type) or not issubclass(current, BaseException) or issubclass(own, current):
        return own
    if issubclass(current, own):
        return current
    try:
        return type(own.__name__, (own, current), {"__module__": own.__module__})
    except TypeError:  # their instances are laid out differently
        return own
