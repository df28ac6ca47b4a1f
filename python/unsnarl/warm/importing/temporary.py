"""Temporary directories that imports make: each run has its own.

A server's would be everybody's, and gone with the first worker that ends. So it is made anew in each
worker, by the call that the import has made, where everything that knows its path can be told the new
one: globals of modules, plain or of a class derived from ``str``, and arguments of what is registered
with ``atexit``. Else the command is not imported ahead.

Invariant: nothing that Python's collector can see holds the path of a directory that is made anew, nor
a text with it, but what is told the new one.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from ..renewals import TEMPORARY_DIRECTORY, Renewal
from . import holders

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial
    from typing import Any
else:
    from _functools import partial

# How many characters of a name tempfile draws, and from which; and the mode it gives.
_DRAWN, _CHARACTERS, _MODE = 8, "abcdefghijklmnopqrstuvwxyz0123456789_", 0o40700


class Made:
    """One file or directory that an import has made, and what knows of it."""

    __slots__ = ("arguments", "module", "owner", "path", "places")

    def __init__(self, path: str, owner: str = "", module: str = "") -> None:
        self.path = path
        # Which of the modules asked for was being imported, and whose body ran.
        self.owner, self.module = owner, module
        # Of ``tempfile.mkdtemp``: suffix and prefix, each in the parts around the process's number, and directory.
        self.arguments: tuple[list[str] | None, list[str] | None, Any] = (None, None, None)
        # Modules, and the names there, that hold the path.
        self.places: list[tuple[str, str]] = []

    def stem(self) -> str:
        """Return what is the same in each run; nothing where that cannot be told, or the directory is not as new."""
        directory, name = os.path.split(self.path)
        try:
            status = os.lstat(self.path)
            if name[-_DRAWN:].strip(_CHARACTERS) or status.st_mode != _MODE or os.listdir(self.path):
                return ""
        except OSError:
            return ""
        is_own = status.st_uid == os.geteuid()
        return f"{directory}/{'0'.join(_around(name[:-_DRAWN]) or ())}" if is_own else ""

    def find_places(self) -> bool:
        """Find the globals that hold the path; says whether there are any, and nothing else has it."""
        self.places, is_elsewhere = holders.find(self.path, _can_be_made, (Made, _AtEnd))
        return bool(self.places) and not is_elsewhere


class _AtEnd(partial):  # type: ignore[type-arg]
    """A function registered for the end, with a path that is another in each run among its arguments.

    A call of it makes no frame that a traceback could show.
    """

    def __eq__(self, other: object) -> bool:
        """Be found by ``atexit.unregister``, which compares."""
        return bool(self.function == other)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        """Return what a complaint about it shows."""
        return repr(self.function)

    def keep(self, function: Callable[..., object], args: list[Any], named: dict[str, Any]) -> None:
        """Take a function, whole: one that is a ``partial`` itself would be taken apart by a call of the class."""
        self.function, self.given = function, (args, named)

    def update(self) -> None:
        """Take the paths of now."""
        args, named = self.given
        now = {name: _current(value) for name, value in named.items()}
        state: Any = self
        state.__setstate__((self.function, tuple(map(_current, args)), now, vars(self)))


def _current(value: Any) -> Any:
    return value.path if type(value) is Made else value


class Directories:
    """What imports have made, noted while they run."""

    def __init__(self) -> None:
        self.made: list[Made] = []
        self._pid = os.getpid()
        self._replaced: list[tuple[object, object]] = []
        self._ends: list[_AtEnd] = []
        # What else was registered: `atexit` itself shows nobody what it holds (until Python 3.14).
        self._registered: list[tuple[object, ...]] = []

    def watch_ends(self) -> None:
        """Have paths that are registered for the end known."""
        plain = atexit.register

        def register(function: Callable[..., object], /, *args: Any, **named: Any) -> Any:
            known = {made.path: made for made in self.made}
            values = [*args, *named.values()]
            if not any(type(value) is str and value in known for value in values):
                if known:
                    self._registered.append((function, args, named))
                return plain(function, *args, **named)
            mine = [known.get(value, value) if type(value) is str else value for value in values]
            ours, others = mine[: len(args)], dict(zip(named, mine[len(args) :], strict=True))
            at_end = _AtEnd(function)
            at_end.keep(function, ours, others)
            self._ends.append(at_end)
            plain(at_end)
            return function

        self._replace(plain, register)

    def watch_calls(self) -> None:
        """Have what ``tempfile.mkdtemp`` is called with noted."""
        import tempfile

        plain: Callable[..., Any] = tempfile.mkdtemp

        def mkdtemp(suffix: Any = None, prefix: Any = None, dir: Any = None) -> Any:
            path = plain(suffix, prefix, dir)
            made = Made(path)
            made.arguments = (_around(suffix), _around(prefix), os.path.dirname(path) if dir is None else dir)
            self.made.append(made)
            return path

        self._replace(plain, mkdtemp)

    def _replace(self, plain: object, function: object) -> None:
        _exchange(plain, function)
        self._replaced.append((plain, function))

    def left(self) -> list[Made]:
        """Return what is still there when the imports are through, and forget the rest."""
        self.made = [made for made in self.made if os.path.lexists(made.path)]
        return self.made

    def stems(self) -> list[tuple[str, str, str, str]]:
        """Return what is the same in each run, to be compared: ``(module asked for, module, name, value)``."""
        return [
            (one.owner, one.module, f"{TEMPORARY_DIRECTORY} {number}", one.stem())
            for number, one in enumerate(self.made, 1)
        ]

    def settle(self, renewals: list[Renewal]) -> str:
        """Watch no more, find what knows of the server's own directories, and remove them.

        Returns what was learned (``renewals``) and does not hold here, nothing if all does.
        """
        if not self._replaced:
            return ""
        for plain, function in self._replaced:
            _exchange(function, plain)
        gc.collect()
        places: list[tuple[str, str]] = []
        lost = ""
        for made in self.left():
            if not made.find_places():
                lost = made.path
            places += made.places
        self._registered.clear()
        for made in self.made:
            try:
                os.rmdir(made.path)
            except OSError:
                lost = made.path
        expected = [one for one in renewals if one.recipe == TEMPORARY_DIRECTORY and one.module in sys.modules]
        learned = [(one.module, one.name) for one in expected]
        return lost or next((".".join(place) for place in learned if place not in places), "")

    def make_anew(self) -> None:
        """Make those of this process, and tell everybody who knows the server's. Raises OSError if one cannot be."""
        number = str(os.getpid())
        for made in self.made:
            suffix, prefix, directory = made.arguments
            texts = [None if parts is None else number.join(parts) for parts in (suffix, prefix)]
            made.path = sys.modules["tempfile"].mkdtemp(*texts, directory)
            anew: dict[int, Any] = {}
            for module, name in made.places:
                names = sys.modules[module].__dict__
                old = names[name]  # kept by whoever else has it until all are told
                if id(old) not in anew:
                    anew[id(old)] = _with_path(old, made.path)
                names[name] = anew[id(old)]
        self.tell_ends()

    def tell_ends(self) -> None:
        """Put the paths of now into what is registered for the end, where the search must not find them."""
        for at_end in self._ends:
            at_end.update()

    def discard(self) -> None:
        """Remove those of a process that is not to run after all."""
        if os.getpid() != self._pid:
            self.remove()

    def remove(self) -> None:
        """Remove what is still there and has nothing in it."""
        for made in self.made:
            try:
                (os.rmdir if os.path.isdir(made.path) else os.unlink)(made.path)
            except OSError:
                pass  # it is gone, or there is something in it


def expected(renewals: list[Renewal]) -> Directories:
    """Begin to watch a server's imports, where learning has found that they make directories."""
    result = Directories()
    if any(one.recipe == TEMPORARY_DIRECTORY for one in renewals):
        result.watch_ends()
        result.watch_calls()
    return result


def _exchange(old: object, new: object) -> None:
    """Put one function in another's place in all modules, whoever has imported it by name."""
    for _, names in holders.modules():
        for key in [key for key, value in names.items() if value is old]:
            names[key] = new


def _with_path(text: Any, path: str) -> Any:
    """Return a path as text of the same class: what is derived from ``str`` is made as :mod:`copy` makes it."""
    if type(text) is str:
        return path
    function, args, *rest = text.__reduce_ex__(4)
    state: Any = rest[0] if rest else None
    old = str.__str__(text)
    made: Any = function(*[path if type(arg) is str and arg == old else arg for arg in args])
    if state is not None:
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            for part in _parts(state):
                for name, value in (part or {}).items():
                    setattr(made, name, value)
    return made


def _parts(state: Any) -> tuple[dict[str, Any] | None, ...]:
    """Return what is kept in the instance's dictionary, and in its slots if it has some."""
    return state if type(state) is tuple else (state,)  # pyright: ignore[reportUnknownVariableType]


def _can_be_made(text: Any) -> bool:
    """Say whether a text of this class with another path comes out as that."""
    try:
        made = _with_path(text, "/another")
    except Exception:
        return False
    return type(made) is type(text) and str.__eq__(made, "/another")


def _around(text: object) -> list[str] | None:
    """Return what is before, between and after the places in a text where the process's number is."""
    import re

    if not isinstance(text, str):
        return None
    return re.split(rf"(?<!\d){os.getpid()}(?!\d)", str.__str__(text))
