"""Whether this is a sub-interpreter, in which the native module must not be used.

From 3.12 on the native module cannot be loaded in an isolated one. In the others it can, with the scheduler's functions
alone: a native call that waits would ask for the GIL as a thread of the main interpreter, which it holds already.

Invariant: ``sys.modules`` stays as it was.
"""

import _thread
import sys

_EARLIER = "_xxsubinterpreters"
"""The module that tells before 3.12; it has no types."""


def is_here() -> bool:
    """Return whether this is a sub-interpreter."""
    is_main_interpreter = getattr(_thread, "_is_main_interpreter", None)
    if is_main_interpreter is not None:
        return not is_main_interpreter()
    was_loaded = _EARLIER in sys.modules
    try:
        interpreters = __import__(_EARLIER)
    except ImportError:
        return False
    if not was_loaded:
        del sys.modules[_EARLIER]
    return bool(interpreters.get_current() != interpreters.get_main())
