"""Temporary directories made by imports: each worker makes one of its own in place of the server's.

All workers would share a server's directory, and the first worker to end would remove it. Each worker therefore
repeats the call of ``tempfile.mkdtemp`` and updates every holder of the path: globals of modules, of type ``str``
or a subclass, and arguments of functions registered with ``atexit``. If any other object holds the path, the
command is not imported ahead.

Invariant: no object that the garbage collector can reach holds the path of a server's directory, or a text with
that path in it, but those that a worker updates.
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

# Of tempfile: the number of random characters in a name, the alphabet, and the mode of a directory.
_DRAWN, _CHARACTERS, _MODE = 8, "abcdefghijklmnopqrstuvwxyz0123456789_", 0o40700


class Made:
    """One file or directory that an import has made, and the globals that hold its path."""

    __slots__ = ("arguments", "module", "owner", "path", "places")

    def __init__(self, path: str, owner: str = "", module: str = "") -> None:
        self.path = path
        # The requested module, and the one whose body made the call.
        self.owner, self.module = owner, module
        # Arguments of ``tempfile.mkdtemp``: suffix and prefix, split at the process's number, and directory.
        self.arguments: tuple[list[str] | None, list[str] | None, Any] = (None, None, None)
        # The globals that hold the path: module and name.
        self.places: list[tuple[str, str]] = []

    def stem(self) -> str:
        """Return the part of the path that each run has; nothing if it is unclear or the directory is not new."""
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
        """Find the globals that hold the path; return whether there are some, and no other holder."""
        self.places, is_elsewhere = holders.find(self.path, _can_be_made, (Made, _AtEnd))
        return bool(self.places) and not is_elsewhere


class _AtEnd(partial):  # type: ignore[type-arg]
    """A function registered with ``atexit`` that has a temporary path among its arguments.

    Being a ``partial``, it adds no frame to a traceback.
    """

    def __eq__(self, other: object) -> bool:
        """Compare as the function: ``atexit.unregister`` compares."""
        return bool(self.function == other)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        """Return the function's own text, which error messages show."""
        return repr(self.function)

    def keep(self, function: Callable[..., object], args: list[Any], named: dict[str, Any]) -> None:
        """Set the function; the constructor would flatten a function that is a ``partial`` itself."""
        self.function, self.given = function, (args, named)

    def update(self) -> None:
        """Replace the temporary paths among the arguments by the current ones."""
        args, named = self.given
        now = {name: _current(value) for name, value in named.items()}
        state: Any = self
        state.__setstate__((self.function, tuple(map(_current, args)), now, vars(self)))


def _current(value: Any) -> Any:
    return value.path if type(value) is Made else value


class Directories:
    """The temporary files and directories that imports make while they are watched."""

    def __init__(self) -> None:
        self.made: list[Made] = []
        self._pid = os.getpid()
        self._replaced: list[tuple[object, object]] = []
        self._ends: list[_AtEnd] = []
        # Other registered functions: the search must find their arguments, which `atexit` hides (until Python 3.14).
        self._registered: list[tuple[object, ...]] = []

    def watch_ends(self) -> None:
        """Wrap ``atexit.register``, to update temporary paths among the arguments later."""
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
        """Wrap ``tempfile.mkdtemp``, to note its arguments."""
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
        """Return those that exist after the imports, and forget the others."""
        self.made = [made for made in self.made if os.path.lexists(made.path)]
        return self.made

    def stems(self) -> list[tuple[str, str, str, str]]:
        """Return the parts that each run has, for comparison: ``(module asked for, module, name, value)``."""
        return [
            (one.owner, one.module, f"{TEMPORARY_DIRECTORY} {number}", one.stem())
            for number, one in enumerate(self.made, 1)
        ]

    def hand_over(self, renewals: list[Renewal]) -> str:
        """Unwrap the functions, find the holders of the server's directories, and remove the directories.

        Returns a path or a global for which workers cannot make a new directory, nothing if there is none.
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

    def renew(self) -> None:
        """Make this worker's directories and update all holders of the server's paths. Raises OSError."""
        number = str(os.getpid())
        for made in self.made:
            suffix, prefix, directory = made.arguments
            texts = [None if parts is None else number.join(parts) for parts in (suffix, prefix)]
            made.path = sys.modules["tempfile"].mkdtemp(*texts, directory)
            replaced: dict[int, Any] = {}
            for module, name in made.places:
                names = sys.modules[module].__dict__
                old = names[name]  # one object in several globals becomes one new object
                if id(old) not in replaced:
                    replaced[id(old)] = _with_path(old, made.path)
                names[name] = replaced[id(old)]
        self.update_ends()

    def update_ends(self) -> None:
        """Put the current paths into the arguments of functions registered with ``atexit``."""
        for at_end in self._ends:
            at_end.update()

    def discard(self) -> None:
        """Remove this worker's directories if it does not run after all."""
        if os.getpid() != self._pid:
            self.remove()

    def remove(self) -> None:
        """Remove what exists and is empty."""
        for made in self.made:
            try:
                (os.rmdir if os.path.isdir(made.path) else os.unlink)(made.path)
            except OSError:
                pass  # removed already, or not empty

    def clear(self) -> None:
        """Remove what exists, with all that is in it: no function that the imports have registered for it is called."""
        for made in self.left():
            if os.path.isdir(made.path) and not os.path.islink(made.path):
                sys.modules["shutil"].rmtree(made.path, ignore_errors=True)  # tempfile, which has made it, needs it
        self.remove()


def expected(renewals: list[Renewal]) -> Directories:
    """Begin to watch a server's imports, if learning has found temporary directories."""
    result = Directories()
    if any(one.recipe == TEMPORARY_DIRECTORY for one in renewals):
        result.watch_ends()
        result.watch_calls()
    return result


def _exchange(old: object, new: object) -> None:
    """Replace a function in all modules, including those that have imported it by name."""
    for _, names in holders.modules():
        for key in [key for key, value in names.items() if value is old]:
            names[key] = new


def _with_path(text: Any, path: str) -> Any:
    """Return a path as an object of the same class as ``text``; a subclass of ``str`` is copied as by :mod:`copy`."""
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
    """Return the state of the instance's dictionary and, if it has slots, of those."""
    return state if type(state) is tuple else (state,)  # pyright: ignore[reportUnknownVariableType]


def _can_be_made(text: Any) -> bool:
    """Return whether an object of this class can be made with another path."""
    try:
        made = _with_path(text, "/another")
    except Exception:
        return False
    return type(made) is type(text) and str.__eq__(made, "/another")


def _around(text: object) -> list[str] | None:
    """Split a text at each occurrence of the process's number."""
    import re

    if not isinstance(text, str):
        return None
    return re.split(rf"(?<!\d){os.getpid()}(?!\d)", str.__str__(text))
