"""Kept values: finds the variables, and whether it is the working directory too, that imports read and only keep.

One learning run gives the imports another value of the same kind, for each variable that they read and for the working
directory. The other value is a text that reports what is asked about it, and no other object contains it by chance.
After the imports the heap is searched for it.

| the imports | the variable |
|---|---|
| compare the value, cut it, look up a path made of it, … | decides something: its value belongs to the key |
| keep it, or a path made of it, in anything but a global | the same: a worker could not set it again |
| keep it, or a path made of it, in globals only | is kept: each worker sets these globals again |
| only ask whether there is one, and whether it is empty | is kept, in no place |

Not noticed: a match by a regular expression whose result is not kept, and what C code does with a value.

Invariant: the texts answer as plain ones do. In doubt a variable decides something.
"""

from __future__ import annotations

import gc
import os
import posixpath
import sys

from ..importing import holders
from ..renewals import DIRECTORY, Renewal, kept
from .environment_copies import is_copy

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What any object is asked for, and tells nothing of a text. The first word of code that keeps a value is often
# `if value`; whether there is one belongs to the key.
_HARMLESS = frozenset(
    [
        "__new__", "__init__", "__class__", "__doc__", "__getattribute__", "__setattr__", "__delattr__", "__dir__",
        "__init_subclass__", "__subclasshook__", "__reduce__", "__reduce_ex__", "__sizeof__", "__getnewargs__",
        "__getstate__", "__bool__", "__buffer__", "__release_buffer__", "__repr__", "maketrans", "fromhex",
    ]
)  # fmt: skip
# Conversions that plain texts lack a method for, so that the interpreter reads the text itself.
_CONVERSIONS = ("__int__", "__float__", "__complex__", "__index__")
# Functions that make another path of one, and depend on nothing but its kind; and those that take it apart.
_MAKING = ("join", "abspath", "normpath", "expanduser", "expandvars", "normcase")
_APART = (
    *("split", "splitroot", "splitdrive", "splitext", "basename", "dirname"),
    *("relpath", "commonpath", "commonprefix"),
)
_OF_PATHS = frozenset((*_MAKING, "isabs"))
# Containers that the garbage collector does not track while they hold no others, and how deep these are searched.
_UNTRACKED, _DEPTH = (tuple, dict, frozenset), 5
_OF_SITE = 2
# The plain functions, for ourselves.
_normpath, _dirname = posixpath.normpath, posixpath.dirname


def is_normal(path: str) -> bool:
    """Return whether this is an absolute path that no normalisation changes (crates/client/src/server/key.rs)."""
    return path.startswith("/") and path != "/" and _normpath(path) == path and not path.startswith("//")


def _keys(thing: Any) -> list[Any]:
    """Return the keys of a dictionary, which it does not refer to if all of them are texts."""
    return list(thing) if type(thing) is dict else []  # pyright: ignore[reportUnknownArgumentType]


class Others:
    """The other values of one learning run; ``decided`` are the sources whose value decides something."""

    def __init__(self, sources: list[str]) -> None:
        self._sources = sources
        self.decided: set[str] = set()
        # A number, since the search must not find the text here.
        self._number = int.from_bytes(os.urandom(8), "little")
        self._text: Any = self._class(str)
        self._raw: Any = self._class(bytes)

    def of(self, source: str, real: Any) -> Any:
        """Return another value in place of the real one, if this source has one; else the real one."""
        if source not in self._sources or not real:
            return real
        other = self._other(source, os.fsdecode(real))
        return self._made(other if isinstance(real, str) else os.fsencode(other), source, is_normal(os.fsdecode(real)))

    def look(self, value: object) -> None:
        """Note that something depends on a value: a path was looked up, a program was started."""
        if isinstance(value, (str, bytes)):
            source = self._source(value)
            if source is not None:
                self.decided.add(source)

    def look_at_all(self, values: tuple[object, ...]) -> None:
        """Note the same for each of these values."""
        for value in values:
            self.look(value)

    def watch_paths(self) -> None:
        """Wrap the functions that make paths, which return a reporting text, and those that take them apart."""
        for name in _MAKING:
            self._wrap(name, is_making=True)
        for name in _APART:
            if hasattr(posixpath, name):
                self._wrap(name, is_making=False)

    def places(self) -> list[Renewal]:
        """Search the heap for the other values; return the globals that each worker has to set again.

        A module other than ``site`` that keeps the place of the user's own packages keeps the home directory.
        """
        site: Any = sys.modules.get("site")
        base = getattr(site, "USER_BASE", None) or "\0"
        found: list[tuple[str, Renewal]] = []
        known = {id(names): (name, names) for name, names in holders.modules()}
        things: list[Any] = self._holding(gc.get_objects(), base)
        for thing in things:
            held: dict[str, int] = {}
            for text in holders.texts(thing):
                source = self._source(text)
                is_of_others = source is None and thing is not vars(site) and not is_copy(thing)
                if is_of_others and type(text) is str and base in text:
                    self.decided.add("HOME")
                if source is not None:
                    held[source] = held.get(source, 0) + 1
            if held and id(thing) in known:
                for source, renewal in self._globals(*known[id(thing)]):
                    found.append((source, renewal))
                    held[source] -= 1
            self.decided.update([source for source, count in held.items() if count > 0])
        return [renewal for source, renewal in found if source not in self.decided]

    def _holding(self, things: list[Any], base: str) -> list[Any]:
        """Return these objects, or none if a quick look at all texts finds nothing."""
        mark = f"{self._number:016x}x"
        raw = mark.encode()
        count, level = 0, things
        for _ in range(_DEPTH):
            held: list[Any] = gc.get_referents(*level)
            for one in level:
                held += _keys(one)
            texts: list[Any] = [one for one in held if type(one) is str]
            raws: list[Any] = [one for one in held if type(one) is bytes]
            if [1 for text in texts if mark in text] or [1 for one in raws if raw in one]:
                return things
            if [1 for one in held if type(one) in (self._text, self._raw, bytearray)]:
                return things
            count += len([1 for text in texts if base in text])
            level = [one for one in held if type(one) in _UNTRACKED and not gc.is_tracked(one)]
        # Those of ``site`` itself are its base, and the packages there.
        return things if count > _OF_SITE else []

    def _globals(self, module: str, names: dict[str, Any]) -> list[tuple[str, Renewal]]:
        found: list[tuple[str, Renewal]] = []
        for name, value in list(names.items()):
            if not isinstance(value, (str, bytes)) or (source := self._source(value)) is None:
                continue
            text = os.fsdecode(bytes(value)) if isinstance(value, bytes) else str.__str__(value)
            head, _, tail = text.partition(self._start(source))
            # Before the mark is the directory of a path, or nothing; behind it the rest of a longer path, or nothing.
            is_whole = (not head or head.startswith("/")) and (not tail or tail.startswith("/"))
            try:
                recipe = kept(source, tail, is_bytes=isinstance(value, bytes))
            except ValueError:
                continue
            if is_whole and name.isidentifier():
                found.append((source, Renewal(module, name, recipe)))
        return found

    def _start(self, source: str) -> str:
        """Return the text by which the other value of a source is found: all of it, but the directory of a path."""
        return f"{self._number:016x}x{self._sources.index(source):03d}z"

    def _other(self, source: str, real: str) -> str:
        directory = _dirname(real).rstrip("/") + "/" if is_normal(real) else ""
        return directory + self._start(source)

    def _source(self, value: Any) -> str | None:
        """Return the source of a text that contains another value."""
        mark = f"{self._number:016x}x"
        is_text = issubclass(type(value), str)
        at = str.find(value, mark) if is_text else bytes(value).find(mark.encode())
        if at < 0:
            return None
        digits = str.__getitem__(value, slice(at + 17, at + 20)) if is_text else bytes(value)[at + 17 : at + 20]
        number = int(digits) if digits.isdigit() else len(self._sources)
        return self._sources[number] if number < len(self._sources) else None

    def _made(self, value: Any, source: str, is_path: bool) -> Any:
        made = self._text(value) if isinstance(value, str) else self._raw(value)
        made.source, made.is_path = source, is_path
        return made

    def _class(self, plain: Any) -> Any:
        """Make a class of texts that report each query."""
        members: dict[str, object] = {"__bool__": self._having(plain.__len__)}
        for name in dir(plain):
            if name not in _HARMLESS and callable(getattr(plain, name)):
                members[name] = self._asking(getattr(plain, name))
        for name in _CONVERSIONS:
            if not hasattr(plain, name):
                members[name] = self._converting(name)
        # A path as bytes is the same path.
        name = "encode" if plain is str else "decode"
        members[name] = self._recoding(getattr(plain, name))
        kind: Any = type
        return kind(plain.__name__, (plain,), members)

    def _having(self, length: Callable[[Any], int]) -> Callable[[Any], bool]:
        def has_any(text: Any) -> bool:
            return length(text) > 0

        return has_any

    def _asking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def asked(text: Any, *args: Any, **named: Any) -> Any:
            self._report(text)
            return method(text, *args, **named)

        return asked

    def _converting(self, name: str) -> Callable[..., Any]:
        def converted(text: Any) -> Any:
            self._report(text)
            kinds: dict[str, Any] = {"__int__": int, "__float__": float, "__complex__": complex, "__index__": int}
            if name == "__index__":
                raise TypeError("'str' object cannot be interpreted as an integer")
            return kinds[name](str.__str__(text) if isinstance(text, str) else bytes(text))

        return converted

    def _recoding(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def recoded(text: Any, *args: Any, **named: Any) -> Any:
            made = method(text, *args, **named)
            return self._made(made, text.source, text.is_path)

        return recoded

    def _report(self, text: Any) -> None:
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        where = str(frame.f_globals.get("__name__"))
        if where.startswith("_unsnarl_warm"):
            return  # ours; a lookup is reported by :meth:`look`
        if where != "posixpath" or frame.f_code.co_name not in _OF_PATHS or not getattr(text, "is_path", False):
            self.decided.add(getattr(text, "source", DIRECTORY))

    def _wrap(self, name: str, *, is_making: bool) -> None:
        plain: Callable[..., Any] = getattr(posixpath, name)

        def wrapped(*args: Any, **named: Any) -> Any:
            found = plain(*args, **named)
            if is_making:
                return self._derived(found)
            for arg in args:
                self.look(arg)
            return found

        wrapped.__name__, wrapped.__doc__ = name, plain.__doc__
        setattr(posixpath, name, wrapped)

    def _derived(self, path: Any) -> Any:
        if type(path) not in (str, bytes):
            return path
        source = self._source(path)
        return path if source is None else self._made(path, source, True)
