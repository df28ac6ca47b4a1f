"""Flag and ResourceGuard: no call of these waits.

Invariant: one caller wins, since `list.append` and `list.pop` are one step under the GIL.
"""

from __future__ import annotations

from typing import Any

from unsnarl.pure.descriptions import Named, public
from unsnarl.pure.parties import make_mutex

_MISSING: Any = ...


class Flag(Named):
    """A value that is set once: the first call of set() wins, and every reader gets its value.

    `set` returns True to the winner; `get` of an unset flag raises `LookupError`.
    """

    __slots__ = ("__weakref__", "_mutex", "_values")

    _mutex: Any
    _values: list[Any]

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a flag that is not set."""
        flag = object.__new__(cls)
        flag._mutex = make_mutex()
        flag._values = []
        return flag

    def __init__(self) -> None:
        pass

    def set(self, value: object = None) -> bool:
        """Set the flag; True for the one caller that did."""
        with self._mutex:
            if self._values:
                return False
            self._values.append(value)
        return True

    def get(self, default: Any = _MISSING) -> Any:
        """Return the value; `default` if the flag is not set, or LookupError if there is no default."""
        if self._values:
            return self._values[0]
        if default is _MISSING:
            raise LookupError("the flag is not set")
        return default

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return bool(self._values)

    def __bool__(self) -> bool:
        """Return whether the flag is set."""
        return bool(self._values)


class ResourceGuard(Named):
    """A guard that raises, instead of waiting, if a resource is used concurrently.

    `with guard:` raises `RuntimeError` while another caller is inside; `action` is the word for what that caller does.
    """

    __slots__ = ("__weakref__", "_action", "_free")

    _action: str
    _free: list[None]

    def __new__(cls, *_args: Any, **_keywords: Any) -> Any:
        """Make a guard of a free resource."""
        guard = object.__new__(cls)
        guard._free = [None]
        guard._action = "using"
        return guard

    def __init__(self, action: str = "using") -> None:
        if not isinstance(action, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"action must be a str, not {type(action).__name__}")
        self._action = action

    def locked(self) -> bool:
        """Return whether the resource is used."""
        return not self._free

    def __enter__(self) -> None:
        """Start to use the resource."""
        try:
            self._free.pop()
        except IndexError:
            raise RuntimeError(f"another caller is already {self._action} this resource") from None

    def __exit__(self, *_args: object) -> None:
        """End the use."""
        self._free[:] = [None]


public(Flag, ResourceGuard)
