"""The exceptions of the queues: those of the standard library, and replacements where it lacks one.

Invariant: `except queue.Empty` and `except queue.Full` catch them, and so does `except queue.ShutDown` where it exists
(CPython 3.13+). If a `queue.py` of the program hides the standard library's, `Full` and `ShutDown` are classes of
`unsnarl` alone.
"""

import sys

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
        from queue import Empty, Full
    except ImportError:
        from _queue import Empty

        class Full(Exception):  # noqa: N818 - the standard library's name
            """Raised by `put` when there is no room."""

    try:
        from queue import ShutDown
    except ImportError:

        class ShutDown(Exception):  # noqa: N818 - the standard library's name
            """Raised by `put` and `get` when the queue was shut down."""
