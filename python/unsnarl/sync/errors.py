"""The exceptions of the queues: the standard library's, also where it lacks one.

Invariant: `except queue.Empty` and `except queue.Full` catch ours; so does
`except queue.ShutDown` where it exists (CPython 3.13+).
"""

import queue
import sys
from queue import Empty, Full

__all__ = ["Empty", "Full", "ShutDown"]

if sys.version_info >= (3, 13):
    ShutDown = queue.ShutDown
else:

    class ShutDown(Exception):  # noqa: N818 - the standard library's name
        """Raised by `put` and `get` when the queue was shut down."""
