"""Snapshots of the state that all modules of a process share, compared before and after an import.

A module that only some runs import must not change that state. Other runs would find the functions it has replaced
in the standard library, and its hooks, handlers and settings. No import at all may make memory that is shared with
other processes: all runs would share it.

Not compared: data in the standard library's modules, which are mostly caches and tables that fill up, and warnings
filters for a package's own classes.

Invariant: no code of the watched modules is called.
"""

from __future__ import annotations

import _locale
import _warnings
import gc
import os
import sys

from .plugins import top_of

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal

# Modules that change the behaviour of C code, which no state of the interpreter shows.
_WITH_HOOKS_IN_C = ("readline", "gnureadline", "rlcompleter")


class Process:
    """The snapshot before a module that is judged.

    With much of the standard library loaded a snapshot takes some ten milliseconds, and there are hundreds of
    modules. So one is only taken before a judged module, and only if modules that are not judged came between.
    """

    def __init__(self) -> None:
        # Packages that each run imports: every run gets the changes of their modules at some point.
        self.own: frozenset[str] = frozenset()
        self._functions: dict[str, dict[str, Any]] = {}
        self._state: dict[str, Any] = {}
        self._is_known = False

    def look(self) -> None:
        """Take a snapshot unless the last one is valid."""
        if not self._is_known:
            self.change()

    def forget(self) -> None:
        """Invalidate the snapshot: modules that are not judged may have changed the state."""
        self._is_known = False

    def change(self) -> str | None:
        """Return in words what has changed since the snapshot, None if nothing has; then take a new snapshot."""
        self._is_known = True
        state = _state() | _unkept()
        old, self._state = self._state, state
        found = next((what for what, value in state.items() if old and old[what] != value), None)
        functions = {name: _functions(name, names) for name, names in _library()}
        replaced = _replaced(self._functions, functions)
        self._functions = functions
        return found or replaced

    def judges(self, name: str) -> bool:
        """Return whether a module is judged: not loaded yet, and of a package that not every run imports."""
        return name not in sys.modules and top_of(name) not in self.own


class Unkept:
    """The snapshot of the state that no import may change, since a worker could not have it alone."""

    def __init__(self) -> None:
        self._state = _unkept()

    def change(self) -> str | None:
        """Return in words what has changed since, None if nothing has."""
        return next((what for what, value in _unkept().items() if self._state[what] != value), None)


def _library() -> list[tuple[str, dict[str, Any]]]:
    """Return the names in each loaded module of the standard library."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name, module in list(sys.modules.items()):
        if top_of(name) in sys.stdlib_module_names or name == "builtins":
            # Without __getattr__, which would load a lazy module.
            found.append((name, object.__getattribute__(module, "__dict__")))
    return found


def _functions(name: str, names: dict[str, Any]) -> dict[str, Any]:
    """Return the callables of a module, and the functions in classes that it defines."""
    found = {key: value for key, value in names.items() if key[:2] != "__" and callable(value)}
    for key, value in list(found.items()):
        kind: Any = value
        if type(kind) is type and kind.__module__ == name:
            members: dict[str, Any] = type.__getattribute__(kind, "__dict__")
            found |= {f"{key}.{member}": held for member, held in members.items() if type(held) is _FUNCTION}
    return found


_FUNCTION = type(top_of)


def _replaced(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> str | None:
    for module, now in after.items():
        old = before.get(module)
        for key, value in (now if old is None else old).items():
            if _is_strange(value) if old is None else now.get(key) is not value:
                return f"{module}.{key}"
    return None


def _is_strange(value: Any) -> bool:
    """Return whether a function is of neither the standard library nor ours."""
    if type(value) is not _FUNCTION:
        return False
    # A function compiled from a text has no module.
    top = top_of(str(value.__globals__.get("__name__", "builtins")))
    return top not in sys.stdlib_module_names and not top.startswith("_unsnarl")


def _state() -> dict[str, Any]:
    """Return, by name, the state that workers inherit by the fork."""
    data: Any = os.environ
    return {
        "the environment": dict(data._data),
        "sys.path": list(sys.path),
        # A finder behind the others only gets the modules that no other has found.
        "the finders of modules": [id(finder) for finder in sys.meta_path[: _finders()]],
        "the hooks of the path": list(map(id, sys.path_hooks)),
        "the standard streams": [id(getattr(sys, name, None)) for name in ("stdin", "stdout", "stderr")],
        "the locale": _locale.setlocale(_locale.LC_ALL),
        "what is done on a signal": [id(_signal.getsignal(number)) for number in _SIGNALS],
        "logging": _logging(),
        "which warnings are shown": _filters(),
        "the recursion limit": sys.getrecursionlimit(),
        "garbage collection": (gc.isenabled(), gc.get_threshold()),
        "tracing": (id(sys.gettrace()), id(sys.getprofile())),
        "the time limit of sockets": _timeout(),
        "its limits": _limits(),
        "how a standard stream is buffered": [_buffering(s) for s in (sys.__stdin__, sys.__stdout__, sys.__stderr__)],
        "how a terminal is read": [name for name in _WITH_HOOKS_IN_C if name in sys.modules],
    }


_SIGNALS = sorted(_signal.valid_signals())
_AT_FIRST = len(sys.meta_path)


def _finders() -> int:
    return max(_AT_FIRST, 1)


# State of `logging` when it has just been loaded: WARNING, no handlers, nothing disabled.
_NEW_LOGGING: tuple[int, list[int], int] = (30, [], 0)


def _logging() -> object:
    root: Any = getattr(sys.modules.get("logging"), "root", None)
    return _NEW_LOGGING if root is None else (root.level, list(map(id, root.handlers)), root.manager.disable)


def _filters() -> list[int]:
    filters: Any = _warnings  # the list of `warnings`, whether that is loaded or not
    return [id(one) for one in filters.filters if top_of(str(one[2].__module__)) in sys.stdlib_module_names]


def _timeout() -> object:
    socket: Any = sys.modules.get("_socket")
    return socket and socket.getdefaulttimeout()


def _unkept() -> dict[str, Any]:
    """Return, by name, the state that workers must not inherit."""
    return {"what memory it shares": _shared_memory()}


def _limits() -> str:
    with open("/proc/self/limits", encoding="ascii") as file:
        return file.read()


def _buffering(stream: Any) -> object:
    """Return the one setting of a standard stream that workers inherit."""
    try:
        return getattr(stream, "line_buffering", None)
    except ValueError:
        return None  # detached, or closed


def _shared_memory() -> list[str]:
    """Return the writable mappings that a child would share with its parent."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        return [line for line in file if line.split(None, 2)[1].endswith("s") and "w" in line.split(None, 2)[1]]
