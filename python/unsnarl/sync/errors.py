"""The exceptions of the queues: the standard library's, also where it lacks one.

Invariant: `except queue.Empty` and `except queue.Full` catch ours; so does
`except queue.ShutDown` where it exists (CPython 3.13+). In a program with a `queue.py` of
its own, which hides the standard library's, they are classes that only `unsnarl` names.
"""

import sys

__all__ = ["Empty", "Full", "ShutDown"]

TYPE_CHECKING = False  # type checkers take any variable of this name for true
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
