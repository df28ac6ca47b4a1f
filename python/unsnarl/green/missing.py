"""Error messages for the names that gevent removes from the standard library: the reason, and the alternative.

gevent removes these names so that programs which prefer them fall back to what works. A program without a fallback
would get the ``AttributeError`` of a misspelt name.

Invariant: the names stay missing: ``hasattr`` is false, and ``getattr`` returns its default.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

INSTEAD = {
    "select": {"epoll": "select.poll or selectors.DefaultSelector"},
    "selectors": {"EpollSelector": "selectors.DefaultSelector"},
}
"""The missing names of each module, and their alternatives."""


def install() -> None:
    """Add the explanation to the error of each missing name."""
    for name, instead in INSTEAD.items():
        module: Any = import_module(name)
        if "__getattr__" not in vars(module):
            module.__getattr__ = _Explaining(name, instead)


class _Explaining:
    """A module's ``__getattr__`` that explains missing names."""

    def __init__(self, module: str, instead: dict[str, str]) -> None:
        self._module = module
        self._instead = instead

    def __call__(self, name: str) -> NoReturn:
        """Raise the module's usual error, with the reason if the name is one that gevent removes."""
        usual = f"module {self._module!r} has no attribute {name!r}"
        instead = self._instead.get(name)
        why = f" in green threads, all of which it would stop (hint: use {instead})" if instead else ""
        raise AttributeError(usual + why)
