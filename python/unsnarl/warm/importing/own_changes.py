"""Changes that a command makes itself, which an import may read: variables that it sets, and the working directory.

A module that is imported ahead reads the caller's value, where a plain run would find the command's. So a module that
is imported after code of the command has run, and that reads what the command may change, is not imported ahead.

A variable counts as changed if its name is a constant of the command's own file, and that file does more with the
environment than to read it, or if another module has a statement that sets or removes it. If a file sets a variable by
a name that is put together at run time (of a ``.env`` file), any variable counts as changed.

Only a learning run loads it: it needs ``ast``.
"""

from __future__ import annotations

import ast
import warnings

from . import environment_writes, path_changes
from .environment_writes import Writes, identifier

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterable


class Changes:
    """What the command's own file may change before it imports a module; nothing of a command without a source."""

    def __init__(self, source: bytes = b"", tree: ast.Module | None = None, *, is_module: bool = False) -> None:
        """Take source and syntax tree of the file; ``is_module``: it runs with ``python -m``."""
        self.of_directory = b"chdir" in source
        self.of_library = replaces_library(source)
        # The first change of what is found, and whether it changes the process, so that whatever is imported then may
        # come out otherwise.
        self.first, self.of_process = path_changes.NOWHERE, False
        if tree is not None:
            self.first, self.of_process = path_changes.find(tree, is_module=is_module)
        writes = environment_writes.of(tree, is_own=True) if tree is not None and b"env" in source else Writes()
        self.variables = frozenset(writes.names)
        # Whether it may be any variable.
        self.are_any = writes.are_any

    def has(self, name: str) -> bool:
        """Return whether a variable may have been changed."""
        return self.are_any or name in self.variables

    def has_beginning(self, beginning: str) -> bool:
        """Return whether a variable with this beginning may have been changed."""
        return self.are_any or any(name.startswith(beginning) for name in self.variables)


def replaces_library(source: bytes) -> str:
    """Return the call of gevent or eventlet in a source that replaces parts of the standard library, or nothing.

    A module that was imported ahead keeps what it has taken from there (``from time import sleep``).
    """
    if b"gevent" not in source and b"eventlet" not in source:
        return ""
    return next((call.decode() for call in (b"patch_all(", b"monkey_patch(") if call in source), "")


def patching_call(source: bytes) -> str:
    """Return the same of an installed package, whose comments may name the function: a call that the syntax shows."""
    name = replaces_library(source).rstrip("(")
    tree = _parsed(source) if name else None
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    return f"{name}(" if any(identifier(call.func) == name for call in calls) else ""


def changes_others(source: bytes) -> bool:
    """Return whether a module changes what others find that are imported after it (:func:`path_changes.are_in`)."""
    tree = _parsed(source)
    return tree is not None and path_changes.are_in(tree)


class Source:
    """The source of a module other than the command's own file."""

    def __init__(self, text: bytes, *, is_run: bool, is_installed: bool, is_library: bool = False) -> None:
        self.text = text
        # Of the standard library.
        self.is_library = is_library
        # Whether its body has been run under watch.
        self.is_run = is_run
        # Of the standard library or an installed package, where a name that is put together is a caller's, or the
        # variable is set for another process (`os`, `requests`, `httpie`), as far as was seen.
        self.is_installed = is_installed


def written(
    sources: Iterable[Source], parts: Iterable[str] | None = None, *, has_files: bool = True, is_observed: bool = True
) -> Writes:
    """Return which variables statements of these modules set or remove.

    Of installed packages only the names that have one of these ``parts`` are wanted, as a file spells them.
    ``has_files``: a package is installed that reads variables from files; else a call of it does nothing.
    Unless ``is_observed`` (runs were seen to change what they change), such packages count like modules of the project.
    """
    found = Writes()
    for source in sources:
        is_known = source.is_installed and (is_observed or source.is_library)
        if environment_writes.may_write(source.text, parts if is_known else None):
            tree = _parsed(source.text)
            if tree is not None:
                writes = environment_writes.of(tree, is_run=source.is_run)
                writes.are_of_file = writes.are_of_file and (has_files or not source.is_installed)
                found.add(writes, is_installed=is_known)
    return found


def _parsed(text: bytes) -> ast.Module | None:
    """Return the syntax tree of a source, without a word about it; None if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None  # no run can import it
