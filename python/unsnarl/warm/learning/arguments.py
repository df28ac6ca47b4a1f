"""Notice decisions that imports make by the arguments: each run has others.

A copy of ``sys.argv`` is found and replaced (:func:`preload.argument_copies`). What was decided by it
leaves no trace: ``'test' in sys.argv``, ``sys.argv[1] == 'serve'``, ``len(sys.argv) > 1``. So while the
imports are watched, the list tells who asks it, and each argument in it tells who compares it. The
program's own name may be asked for, and the whole list or a slice be copied. How many there are is asked
by who copies them, too, and by who decides nothing with it in the end: so the one learning run has some, the
other one none, and what is made of that differs between them.

What is not noticed: a set or a dictionary of the arguments that is asked for one of them, and what is
made of an argument by a regular expression.

Invariant: both answer as a list and a string would.
"""

from __future__ import annotations

import sys

from ..importing import preload

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What has a method of the name answers a question about the arguments, whoever has copied them.
_OF_LIST = ("__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "index", "count")
_OF_LIST_ALSO = ("pop", "remove")
_OF_TEXT = (
    *("__contains__", "__len__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__getitem__", "__iter__"),
    *("startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split", "rsplit", "partition"),
    *("rpartition", "lower", "upper", "strip", "lstrip", "rstrip", "isdigit", "isdecimal", "isidentifier"),
)


class _Arguments(list):  # type: ignore[type-arg]
    """Stands for ``sys.argv``."""


class _Argument(str):
    """Stands for the arguments to be."""

    __slots__ = ()


def _is_program() -> bool:
    """Say whether this is asked by somebody else's code: the standard library's asks on behalf of its callers."""
    name = str(sys._getframe(2).f_globals.get("__name__"))  # pyright: ignore[reportPrivateUsage]
    top = name.partition(".")[0]
    return top not in sys.stdlib_module_names and not top.startswith("_unsnarl")


def _asking(kind: type, name: str, tell: Callable[[], None]) -> None:
    plain: Any = getattr(kind.__base__, name)

    def asked(self: Any, *args: Any) -> Any:
        if _is_program():
            tell()
        return plain(self, *args)

    setattr(kind, name, asked)


def watch(decide: Callable[[], None]) -> None:
    """Have ``decide`` called whenever something is decided by ``sys.argv`` or ``sys.orig_argv``."""
    for name in (*_OF_LIST, *_OF_LIST_ALSO):
        _asking(_Arguments, name, decide)
    for name in _OF_TEXT:
        _asking(_Argument, name, decide)

    def item(self: Any, at: Any) -> Any:
        if type(at) is int and at not in (0, -len_of(self)) and _is_program():
            decide()
        found = item_of(self, at)
        # A part tells as the whole does: it is compared by its length first.
        return _Arguments(found) if type(at) is slice and _is_program() else found

    plain: Any = list
    len_of, item_of = plain.__len__, plain.__getitem__
    setattr(_Arguments, "__getitem__", item)  # noqa: B010 -- a method that no checker takes for the list's
    setattr(_Argument, "__hash__", str.__hash__)  # noqa: B010
    sys.argv, sys.orig_argv = _Arguments(sys.argv), _Arguments(sys.orig_argv)


def stand_in(count: int) -> None:
    """Put so many arguments that tell in the place of the plain one."""
    plain: Any = list
    plain_index = plain.index
    for words in (sys.argv, sys.orig_argv):
        at = plain_index(words, preload.SENTINEL)
        words[at : at + 1] = [_Argument(preload.SENTINEL) for _ in range(count)]
