"""What the classes share that has nothing to do with waiting: their names, texts, and the refusal of copies."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn


class Named:
    """An object that cannot be copied, and is shown by its class's name and its state."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def _show(self, state: str = "") -> str:
        kind = type(self)
        return f"<{kind.__module__}.{kind.__qualname__} at {id(self):#x}{': ' if state else ''}{state}>"


def public(*kinds: Any) -> None:
    """Give classes the module's name under which programs know them."""
    for kind in kinds:
        kind.__module__ = "unsnarl"


def deprecated(message: str) -> None:
    """Warn the caller of a deprecated name, as the standard library does."""
    warnings.warn(message, DeprecationWarning, stacklevel=3)
