"""Which programs cannot run in green threads, as far as their imports tell.

Two kinds cannot: those whose libraries bring native threads that call into Python,
or an event loop in C that never lets a greenlet run, and those whose calls block
the one native thread for long. A library of the first kinds is known by its name, and
by where it is: what the program calls the same is its own affair. It is refused twice:
before the program starts, where its own text imports it outright (``in_source``), and
at the import itself, wherever that is. To look for it (``find_spec``) is no import.

Not to be seen from here: a call into C that computes for long, a loop in Python
that waits for a variable, blocking reads of files and terminals.
docs/guide/green.md tells users.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import NoReturn

from unsnarl.others import Others

_OWN_THREADS = "its native threads call into Python"
_OWN_LOOP = "its event loop is native code, in which no green thread runs"
_COMPUTES = "it computes in native code, during which no green thread runs"
_BETWEEN_PROCESSES = "it blocks the process, with all its green threads, until another process acts"

REASONS = {
    "grpc": _OWN_THREADS,
    "confluent_kafka": _OWN_THREADS,
    "ray": _OWN_THREADS,
    "torch": _COMPUTES,
    "tensorflow": _COMPUTES,
    "jax": _COMPUTES,
    "tkinter": _OWN_LOOP,
    "PyQt5": _OWN_LOOP,
    "PyQt6": _OWN_LOOP,
    "PySide2": _OWN_LOOP,
    "PySide6": _OWN_LOOP,
    "wx": _OWN_LOOP,
    "gi": _OWN_LOOP,
    "uvloop": _OWN_LOOP,
    "trio": "it waits with select.epoll, which stops every green thread",
    "eventlet": "it brings green threads of its own",
    "multiprocessing.synchronize": _BETWEEN_PROCESSES,
    "multiprocessing.queues": _BETWEEN_PROCESSES,
    "unsnarl.ipc": _BETWEEN_PROCESSES,
}
"""Modules that do not work beside green threads, and why."""

HINT = "run the program without --green"


class GreenRefusal(ImportError):  # noqa: N818 -- a fact about the module, not a mistake
    """Say that a module cannot be used in green threads; the program's import fails with it."""


class _Refusing(Loader):
    """Refuse to load a module."""

    def create_module(self, spec: ModuleSpec) -> NoReturn:
        """Say why it cannot be used."""
        reason = REASONS[spec.name]
        raise GreenRefusal(f"{spec.name} cannot be used in green threads: {reason} (hint: {HINT})", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Not come here."""


class _Finder:
    """Find the modules of REASONS where the other finders do, with a loader that refuses them; know no other."""

    def __init__(self) -> None:
        self._others = Others(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module that is there and refused."""
        if fullname not in REASONS:
            return None
        found: ModuleSpec | None = self._others.find_spec(fullname, path, target)
        if found is None or not is_library(found):
            return None  # as if this finder were not there
        found.loader = _Refusing()
        return found


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def is_library(spec: ModuleSpec) -> bool:
    """Tell whether a module is installed, or the standard library's, and not the program's own."""
    if spec.origin is None:  # a directory without __init__.py
        return False
    if not os.path.isabs(spec.origin):  # built in, or frozen
        return True
    is_installed = any(part in spec.origin for part in _INSTALLED) or _is_recorded(spec.name, spec.origin)
    return is_installed or spec.origin.startswith((_OURS, _STANDARD))


def _is_recorded(name: str, origin: str) -> bool:
    """Tell whether pip has put a file where it is, as it does with ``--target`` in any directory."""
    import glob

    depth = name.count(".") + 1 + os.path.basename(origin).startswith("__init__.")
    base = os.path.abspath(os.path.join(origin, *[os.pardir] * depth))
    entry = os.path.relpath(origin, base) + ","
    for record in glob.glob(os.path.join(glob.escape(base), "*.dist-info", "RECORD")):
        try:
            with open(record, encoding="utf-8", errors="replace") as stream:
                if any(line.startswith(entry) for line in stream):
                    return True
        except OSError:
            continue
    return False


def install() -> None:
    """Refuse from now on."""
    sys.meta_path.insert(0, _Finder())


def in_source(text: str | bytes, path: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each refused module that a program's text imports outright.

    Outright is: as a statement of the module itself, in no ``try``, ``if`` or function.
    A text that is no Python yields nothing, nor does a module that is not there: python
    itself will say so.

    Args:
        text: the program's.
        path: where the program will look for modules (its ``sys.path``).
    """
    import ast
    import warnings

    try:
        with warnings.catch_warnings():  # the interpreter says them itself, with the file's name
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for statement in tree.body:
        for name in _imported(statement):
            refused = _refused(name)
            if refused is not None and _is_library_on(path, refused):
                yield statement.lineno, refused


def _is_library_on(path: Sequence[str], name: str) -> bool:
    """Tell whether a name leads to a library that is there, without importing the packages around it."""
    places: Sequence[str] | None = path
    spec: ModuleSpec | None = None
    package = ""
    for part in name.split("."):
        package = f"{package}.{part}" if package else part
        spec = PathFinder.find_spec(package, places) if places is not None else None
        if spec is None:
            return False
        places = spec.submodule_search_locations
    return spec is not None and is_library(spec)


def _imported(statement: object) -> list[str]:
    """Return the modules that one statement imports, by their full names."""
    import ast

    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        return [statement.module, *(f"{statement.module}.{alias.name}" for alias in statement.names)]
    return []


def _refused(name: str) -> str | None:
    """Return the refused module that a name leads to: itself, or a package around it."""
    parts = name.split(".")
    packages = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((package for package in packages if package in REASONS), None)
