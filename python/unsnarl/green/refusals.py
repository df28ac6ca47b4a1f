"""Which programs cannot run in green threads, as far as their imports tell.

Two kinds cannot: those whose libraries bring native threads that call into Python,
or an event loop in C that never lets a greenlet run, and those whose calls block
the one native thread for long. A library of the first kinds is known by its name.
It is refused twice: before the program starts, where its own text imports it
outright (``in_source``), and at the import itself, wherever that is.

Not to be seen from here: a call into C that computes for long, a loop in Python
that waits for a variable, blocking reads of files and terminals.
docs/guide/green.md tells users.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

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
    "multiprocessing.pool": _BETWEEN_PROCESSES,
}
"""Modules that do not work beside green threads, and why."""

HINT = "run the program without --green"


class GreenRefusal(ImportError):  # noqa: N818 -- a fact about the module, not a mistake
    """Say that a module cannot be used in green threads; the program's import fails with it."""


class _Finder:
    """Refuse the modules of REASONS; know no other."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise for a module that is refused."""
        reason = REASONS.get(fullname)
        if reason is None:
            return None
        raise GreenRefusal(f"{fullname} cannot be used in green threads: {reason} (hint: {HINT})", name=fullname)


def install() -> None:
    """Refuse from now on."""
    sys.meta_path.insert(0, _Finder())


def in_source(text: str | bytes) -> Iterator[tuple[int, str]]:
    """Yield line and name of each refused module that a program's text imports outright.

    Outright is: as a statement of the module itself, in no ``try``, ``if`` or function.
    A text that is no Python yields nothing: python itself will say so.
    """
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for statement in tree.body:
        for name in _imported(statement):
            refused = _refused(name)
            if refused is not None:
                yield statement.lineno, refused


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
