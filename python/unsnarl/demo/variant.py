"""The variants of a measured process, for the demonstration and for the benchmarks.

``stock`` leaves the interpreter unchanged, ``switchinterval`` is the known work-around (a short
interval, at the cost of CPU-bound threads), ``unsnarl`` installs the scheduler. Invariant: the scheduler
is imported only for the variant ``unsnarl``.
"""

from __future__ import annotations

import sys
from typing import Any

STOCK, SWITCHINTERVAL, UNSNARL = "stock", "switchinterval", "unsnarl"
VARIANTS = (STOCK, SWITCHINTERVAL, UNSNARL)

SHORT_INTERVAL_S = 0.0005
"""Seconds; a tenth of CPython's default of 5 ms, the usual advice."""


def enter(variant: str, options: dict[str, Any]) -> None:
    """Apply ``variant`` to this process; ``options`` are for ``unsnarl.gil.install``.

    Raises:
        UnsupportedInterpreter: the scheduler cannot be installed in this interpreter.
    """
    if variant == SWITCHINTERVAL:
        sys.setswitchinterval(SHORT_INTERVAL_S)
    elif variant == UNSNARL:
        from unsnarl import gil

        gil.install(**options)
