"""The ways a measured process can be set up, for the demonstration and for the benchmarks.

``stock`` leaves the interpreter alone, ``switchinterval`` is the known
work-around (a short interval, with its cost for CPU-bound threads), ``unsnarl``
installs the scheduler. Invariant: the scheduler is neither imported nor touched
unless the variant is ``unsnarl``.
"""

from __future__ import annotations

import sys
from typing import Any

STOCK, SWITCHINTERVAL, UNSNARL = "stock", "switchinterval", "unsnarl"
VARIANTS = (STOCK, SWITCHINTERVAL, UNSNARL)

SHORT_INTERVAL_S = 0.0005
"""Seconds; a tenth of CPython's default of 5 ms, the usual advice."""


def enter(variant: str, options: dict[str, Any]) -> None:
    """Set this process up as ``variant`` says; ``options`` are for ``unsnarl.gil.install``.

    Raises:
        UnsupportedInterpreter: the scheduler cannot be installed in it.
    """
    if variant == SWITCHINTERVAL:
        sys.setswitchinterval(SHORT_INTERVAL_S)
    elif variant == UNSNARL:
        from unsnarl import gil

        gil.install(**options)
