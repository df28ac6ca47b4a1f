"""The number of frozen objects before the first lock of unsnarl existed: CPython 3.12 freezes objects of its own.

Invariant: this module is loaded with the classes, so a task that is frozen later raises the count.
"""

import sys


def _at_first() -> int:
    if sys.hexversion >> 16 != 0x030C:  # 3.12 only; type checkers would evaluate sys.version_info
        return 0
    import gc  # built in: no file is searched for

    return gc.get_freeze_count()


AT_FIRST = _at_first()
"""Number of objects. A frozen object cannot be found by its address (:mod:`unsnarl.sync.backends.tasks`)."""
