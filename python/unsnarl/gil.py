"""The GIL scheduler: install it, say what a thread is, see what it did.

Invariant: this module decides nothing; the policy lives in native code.
"""

from __future__ import annotations

import os
import sys

from unsnarl import _native
from unsnarl.errors import UnsupportedInterpreter


def install(*, slice_ms: float | None = None, kernel_hints: bool = True) -> None:
    if os.environ.get("UNSNARL") == "off":
        return
    if slice_ms is not None:
        sys.setswitchinterval(slice_ms / 1000)
    try:
        _native.install(round(sys.getswitchinterval() * 1e9), kernel_hints)
    except _native.Unsupported as error:
        raise UnsupportedInterpreter(*error.args) from None


def uninstall() -> bool:
    return _native.uninstall()


def installed() -> bool:
    return _native.is_installed()


def stats():
    return _native.stats()


def reset_stats() -> None:
    _native.reset_stats()
