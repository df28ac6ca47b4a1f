"""Which module's body is running.

Invariant: unsnarl's own modules do not count.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import FrameType


def importing() -> str:
    """Return the name of the module whose body is running."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_name == "<module>" and not str(frame.f_globals.get("__name__")).startswith("_unsnarl"):
            return str(frame.f_globals.get("__name__"))
        frame = frame.f_back
    return "it"
