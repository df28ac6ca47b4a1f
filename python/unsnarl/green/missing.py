"""A reason and a way on for the names that gevent takes out of the standard library.

gevent takes them out so that programs which prefer them fall back to what works. A program
that has no fallback would get an ``AttributeError`` like that of a slip of the pen.

Invariant: the names stay missing: ``hasattr`` is false, and ``getattr`` with a default gives it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

INSTEAD = {
    "select": {"epoll": "select.poll or selectors.DefaultSelector"},
    "selectors": {"EpollSelector": "selectors.DefaultSelector"},
}
"""Names that are missing in each module, and what serves instead."""


def install() -> None:
    """Explain what is missing, where it is asked for."""
    for name, instead in INSTEAD.items():
        module: Any = import_module(name)
        if "__getattr__" not in vars(module):
            module.__getattr__ = _Explaining(name, instead)


class _Explaining:
    """A module's ``__getattr__``."""

    def __init__(self, module: str, instead: dict[str, str]) -> None:
        self._module = module
        self._instead = instead

    def __call__(self, name: str) -> NoReturn:
        """Raise the module's usual error, with the reason where there is one."""
        usual = f"module {self._module!r} has no attribute {name!r}"
        instead = self._instead.get(name)
        why = f" in green threads, all of which it would stop (hint: use {instead})" if instead else ""
        raise AttributeError(usual + why)
