"""Argument recorder: a ``list`` and a ``str`` subclass that report when an import bases a decision on ``sys.argv``.

A copy of ``sys.argv`` is found and replaced (:func:`preload.argument_copies`), but a decision leaves no copy:
``'test' in sys.argv``, ``sys.argv[1] == 'serve'``, ``len(sys.argv) > 1``. While imports are watched, the list
reports queries and each argument reports comparisons. Two uses are allowed: reading the program's own name, and
copying the whole list or a slice.

The number of arguments is not reported, since every copy reads it. One learning run has arguments and the other
has none, so a value made of the number differs between the two.

Not noticed: a lookup in a set or dictionary of the arguments, and a match by a regular expression.

Invariant: both classes answer as a plain list and a plain string would.
"""

from __future__ import annotations

import sys

from ..importing import preload

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Methods that answer a question about the arguments, also on a copy.
_OF_LIST = ("__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "index", "count")
_OF_LIST_ALSO = ("pop", "remove")
_OF_TEXT = (
    *("__contains__", "__len__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__getitem__", "__iter__"),
    *("startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split", "rsplit", "partition"),
    *("rpartition", "lower", "upper", "strip", "lstrip", "rstrip", "isdigit", "isdecimal", "isidentifier"),
)


class _Arguments(list):  # type: ignore[type-arg]
    """Takes the place of ``sys.argv``."""


class _Argument(str):
    """Takes the place of one argument."""

    __slots__ = ()


def _is_program() -> bool:
    """Return whether the calling code is neither the standard library's nor ours."""
    name = str(sys._getframe(2).f_globals.get("__name__"))  # pyright: ignore[reportPrivateUsage]
    top = name.partition(".")[0]
    return top not in sys.stdlib_module_names and not top.startswith("_unsnarl")


def _report(kind: type, name: str, report: Callable[[], None]) -> None:
    plain: Any = getattr(kind.__base__, name)

    def asked(self: Any, *args: Any) -> Any:
        if _is_program():
            report()
        return plain(self, *args)

    setattr(kind, name, asked)


def watch(decide: Callable[[], None]) -> None:
    """Call ``decide`` whenever code bases a decision on ``sys.argv`` or ``sys.orig_argv``."""
    for name in (*_OF_LIST, *_OF_LIST_ALSO):
        _report(_Arguments, name, decide)
    for name in _OF_TEXT:
        _report(_Argument, name, decide)

    def item(self: Any, at: Any) -> Any:
        if type(at) is int and at not in (0, -len_of(self)) and _is_program():
            decide()
        found = item_of(self, at)
        # A slice reports as well; its length is compared first.
        return _Arguments(found) if type(at) is slice and _is_program() else found

    plain: Any = list
    len_of, item_of = plain.__len__, plain.__getitem__
    setattr(_Arguments, "__getitem__", item)  # noqa: B010 -- type checkers reject the assignment
    setattr(_Argument, "__hash__", str.__hash__)  # noqa: B010
    sys.argv, sys.orig_argv = _Arguments(sys.argv), _Arguments(sys.orig_argv)


def stand_in(count: int) -> None:
    """Replace the placeholder by this many recording arguments."""
    plain: Any = list
    plain_index = plain.index
    for words in (sys.argv, sys.orig_argv):
        at = plain_index(words, preload.SENTINEL)
        words[at : at + 1] = [_Argument(preload.SENTINEL) for _ in range(count)]
