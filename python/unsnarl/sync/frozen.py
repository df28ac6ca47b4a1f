"""How much was out of the collector's sight before any lock of ours was there: CPython 3.12 freezes what it has itself.

Invariant: loaded with the classes, so a task that was frozen later counts.
"""

import sys


def _at_first() -> int:
    if sys.version_info[:2] != (3, 12):
        return 0
    import gc  # built in: no file is looked for

    return gc.get_freeze_count()


AT_FIRST = _at_first()
"""Objects. One that is frozen is not found by its address (:mod:`unsnarl.sync.backends.tasks`)."""
