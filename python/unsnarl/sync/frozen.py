"""How much was out of the collector's sight before any lock of ours was there: CPython 3.12 freezes what it has itself.

Invariant: loaded with the classes, so a task that was frozen later counts.
"""

import sys


def _at_first() -> int:
    if sys.hexversion >> 16 != 0x030C:  # of 3.12, in a form that is the same to checkers of every version
        return 0
    import gc  # built in: no file is looked for

    return gc.get_freeze_count()


AT_FIRST = _at_first()
"""Objects. One that is frozen is not found by its address (:mod:`unsnarl.sync.backends.tasks`)."""
