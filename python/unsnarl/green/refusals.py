"""Refusal of programs that cannot run in green threads, as far as their imports show it.

Refused are libraries

- whose native threads call into Python;
- whose event loop in C never lets a greenlet run;
- whose calls block the one native thread for long.

A library is recognised by its name and its location: a module of the program by the same name is not refused. The
refusal happens before the program starts, if the program's own source imports the library at its top level
(``in_source``), and otherwise at the import itself. Finding the library (``find_spec``) is not an import.

Not detected: a call into C that computes for long, a loop in Python that waits for a variable, blocking reads of files
and terminals. docs/guide/green.md describes these for users.
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
"""Modules that do not work with green threads, and why."""

HINT = "run the program without --green"


class GreenRefusal(ImportError):  # noqa: N818 -- a fact about the module, not a mistake
    """A module cannot be used in green threads; the program's import raises this."""


class _Refusing(Loader):
    """A loader that refuses its module."""

    def create_module(self, spec: ModuleSpec) -> NoReturn:
        """Raise, with the reason."""
        reason = REASONS[spec.name]
        raise GreenRefusal(f"{spec.name} cannot be used in green threads: {reason} (hint: {HINT})", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never called: ``create_module`` raises."""


class _Finder:
    """Finds only the modules of REASONS, through the other finders, and gives each a loader that refuses it."""

    def __init__(self) -> None:
        self._others = Others(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module that is found and refused."""
        if fullname not in REASONS:
            return None
        found: ModuleSpec | None = self._others.find_spec(fullname, path, target)
        if found is None or not is_library(found):
            return None  # the other finders handle it
        found.loader = _Refusing()
        return found


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def is_library(spec: ModuleSpec) -> bool:
    """Return whether a module is installed or belongs to the standard library, and is not the program's own."""
    if spec.origin is None:  # a directory without __init__.py
        return False
    if not os.path.isabs(spec.origin):  # built in, or frozen
        return True
    is_installed = any(part in spec.origin for part in _INSTALLED) or _is_recorded(spec.name, spec.origin)
    return is_installed or spec.origin.startswith((_OURS, _STANDARD))


def _is_recorded(name: str, origin: str) -> bool:
    """Return whether pip has installed a file, which ``--target`` does in any directory."""
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
    """Yield line and name of each refused module that a program's source imports at its top level.

    An import inside ``try``, ``if`` or a function is not at the top level. Source that is not Python yields nothing,
    and neither does a module that is not installed: the interpreter reports both.

    Args:
        text: the program's.
        path: where the program will look for modules (its ``sys.path``).
    """
    import ast
    import warnings

    try:
        with warnings.catch_warnings():  # the interpreter shows them itself, with the file's name
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
    """Return whether a name leads to an installed library, without importing its parent packages."""
    locations: Sequence[str] | None = path
    spec: ModuleSpec | None = None
    package = ""
    for part in name.split("."):
        package = f"{package}.{part}" if package else part
        spec = PathFinder.find_spec(package, locations) if locations is not None else None
        if spec is None:
            return False
        locations = spec.submodule_search_locations
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
    """Return the refused module that a name leads to: itself, or a parent package."""
    parts = name.split(".")
    packages = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((package for package in packages if package in REASONS), None)
