"""What the command may change before a module is imported, and which modules have read of it.

A module that has is left to the runs (:mod:`..importing.own_changes`).

Invariant: a change that learning cannot see in a source is a change of the libraries' own, in C.
"""

from __future__ import annotations

import contextlib
import os
import sys

from .. import changed
from ..importing import library
from ..importing.own_changes import Changes, Source, changes_others, patching_call, replaces_library, written

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ..importing.environment_writes import Writes
    from .environment_walk import Walks

# Packages that replace parts of the standard library, if that is asked of them.
_PATCHING = ("gevent", "eventlet")
# Packages that read variables from a file into the environment.
_OF_FILES = ("dotenv", "environ", "environs", "envparse")
# Beginnings of variables that OpenSSL reads: almost every program loads it, and almost none sets these before.
_OF_OPENSSL = ("SSL_", "OPENSSL_")


class Before:
    """Collects what modules read that are imported after code of the command has run."""

    def __init__(self, walks: Walks) -> None:
        # The changes that the command's own file may make before the current imports.
        self.changes = Changes()
        # What runs have changed (:mod:`..changed`), line by line; an empty line if some have run at all.
        self.of_runs: list[str] = []
        self._is_after_code = False
        self._read: dict[str, set[str]] = {}
        self._beginnings: dict[str, set[str]] = {}
        self._in_directory: set[str] = set()
        # Beginnings of the variables that libraries in C read when they are loaded, and the modules that load them.
        self._of_libraries: dict[str, str] = {}
        # Modules that were loaded after code of the command.
        self._loaded: set[str] = set()
        # Files of modules that are not loaded, on whose statements the judgement depends.
        self.looked_at: set[str] = set()
        walks.is_changed = self._note_beginning

    def begin(self, changes: Changes | None) -> None:
        """Note that code of the command may run before the modules that are imported from now on; None: it does not."""
        self._is_after_code = changes is not None
        self.changes = changes or Changes()

    def note_read(self, name: str, module: str) -> bool:
        """Note that a module reads a variable; return whether the command's own file may have changed it before."""
        if self._is_after_code:
            self._read.setdefault(name, set()).add(module)
        return self.changes.has(name) or self._is_of_runs(name)

    def _is_of_runs(self, read: str) -> bool:
        """Return whether code of the program has changed in a run what is read, named as in ``Facts.late``.

        What the body of a module has changed is judged at the end: it is known then whether that is imported ahead.
        """
        changes = self._by_the_program() if self._is_after_code else ()
        return any(changed.concerns(name, frozenset([read])) for name in changes)

    def _by_the_program(self) -> set[str]:
        return {name for line in self.of_runs for name, _, module in [line.partition("\t")] if not module}

    def late(self) -> set[str]:
        """Return what was read after code of the command, as ``Facts.late`` has it."""
        libraries = [beginning for beginning, module in self._of_libraries.items() if module]
        beginnings = {f"{beginning}*" for beginning in [*self._beginnings, *libraries]}
        directory = [changed.DIRECTORY] if self._in_directory else []
        functions = [f"{changed.REPLACED}{name}" for name in library.kept(self._loaded)]
        return {*self._read, *beginnings, *directory, *functions}

    def note_loaded(self, modules: Iterable[str]) -> None:
        """Note that these modules were loaded."""
        self._loaded.update(modules if self._is_after_code else ())

    def of_functions(self, owners: dict[str, str]) -> list[tuple[str, str]]:
        """Return modules that keep a function of the standard library which runs were seen to replace, and why.

        ``owners`` has for each loaded module the requested one.
        """
        functions = [name[1:] for name in sorted(self._by_the_program()) if name.startswith(changed.REPLACED)]
        kept = library.kept(self._loaded) if functions else {}
        found = [(keeper, function) for function in functions for keeper in sorted(kept.get(function, ()))]
        why = "{} keeps {}, which the command may replace before, while it is imported"
        return [(owners.get(keeper, keeper), why.format(keeper, one)) for keeper, one in found]

    def note_directory(self, module: str) -> bool:
        """Note that a module reads the working directory; return whether the command's own file may have changed it."""
        if self._is_after_code:
            self._in_directory.add(module)
        return self.changes.of_directory or self._is_of_runs(changed.DIRECTORY)

    def _note_beginning(self, beginning: str, module: str) -> bool:
        """Note the same for all variables with a beginning."""
        if self._is_after_code:
            self._beginnings.setdefault(beginning, set()).add(module)
        return self.changes.has_beginning(beginning) or self._is_of_runs(f"{beginning}*")

    def note_libraries(self, beginnings: Iterable[str], module: str) -> None:
        """Note what the loaded libraries read; ``module`` has loaded those that are new."""
        for beginning in beginnings:
            self._of_libraries.setdefault(beginning, module if self._is_after_code else "")

    def of_libraries(self) -> list[tuple[str, str]]:
        """Return modules that load a library whose variables the command's own file or a run has set, and why."""
        found: list[tuple[str, str]] = []
        known = self.changes.variables | self._by_the_program()
        for beginning, module in self._of_libraries.items():
            names = sorted(name for name in known if name.startswith(beginning))
            if module and (names or (self.changes.are_any and beginning not in _OF_OPENSSL)):
                name = names[0] if names else f"{beginning}…"
                found.append((module, _WHY.format(module, f"loads a library that reads ${name}")))
        return found

    def of_modules(self, unloaded: Iterable[str], set_by_imports: set[str]) -> list[tuple[str, str]]:
        """Return modules that read what a function of another module may have set before, and why.

        ``unloaded`` are files of modules that runs have loaded and that are not imported here. ``set_by_imports`` are
        variables that belong to the key, with what imports make of them.
        """
        libraries = [one for one, module in self._of_libraries.items() if module and one not in _OF_OPENSSL]
        spelled = [text.format(name) for name in self._read for text in ("'{}'", '"{}"', "{}=")]
        parts = [*spelled, *self._beginnings, *libraries]
        loaded = _loaded()
        others = {path for path in unloaded if path.endswith(".py") and path not in loaded}
        # Installed packages, and later edits of the others, matter only where a variable was read.
        self.looked_at.update(others if parts else ())
        sources = [*_sources(loaded, self.looked_at | others, all_of_them=bool(parts))]
        has_files, is_observed = any(map(file_of, _OF_FILES)), bool(self.of_runs)
        writes = written(sources if parts else [], parts, has_files=has_files, is_observed=is_observed)
        writes.names |= changed.names(self.of_runs, sys.modules)
        writes.are_any = writes.are_any or changed.ANY in writes.names
        found: list[tuple[str, str]] = []
        for name, modules in self._read.items():
            if writes.are_any or (name in writes.names and name not in set_by_imports):
                found += [(module, _WHY.format(module, f"reads ${name}")) for module in sorted(modules)]
        for beginning, modules in self._beginnings.items():
            if _is_among(beginning, writes, set_by_imports):
                found += [(module, _WHY.format(module, f"reads ${beginning}…")) for module in sorted(modules)]
        for beginning in libraries:
            module = self._of_libraries[beginning]
            if _is_among(beginning, writes, set_by_imports):
                found.append((module, _WHY.format(module, f"loads a library that reads ${beginning}…")))
        own = [source.text for source in sources if not source.is_installed]
        if any(b"chdir" in text for text in own):
            read = "reads the working directory"
            found += [(module, _WHY.format(module, read)) for module in sorted(self._in_directory)]
        return found + self._of_library([*map(replaces_library, own), *_patching(loaded, others)])

    def _of_library(self, calls: list[str]) -> list[tuple[str, str]]:
        """Return why nothing can be imported ahead, if the command replaces parts of the standard library."""
        calls = [self.changes.of_library, *calls]
        return [("", f"it replaces parts of the standard library, by {call})") for call in calls if call][:1]


_WHY = "{} {}, which the command may set before, while it is imported"


def _is_among(beginning: str, writes: Writes, set_by_imports: set[str]) -> bool:
    return writes.are_any or any(name.startswith(beginning) for name in writes.names - set_by_imports)


def _loaded() -> dict[str, Any]:
    """Return the loaded modules by the files of their sources; without unsnarl's own."""
    found = {getattr(module, "__file__", None): module for module in list(sys.modules.values())}
    return {
        path: module
        for path, module in found.items()
        if isinstance(path, str)
        and path.endswith(".py")
        and not str(getattr(module, "__name__", "")).startswith(("_unsnarl", "unsnarl"))
    }


def _sources(loaded: dict[str, Any], unloaded: Iterable[str], *, all_of_them: bool) -> Iterator[Source]:
    """Yield the sources of loaded modules, and of other files; installed ones with ``all_of_them`` only."""
    for path in sorted({*loaded, *unloaded}):
        is_installed = _is_installed(path)
        text = _text(path, loaded.get(path)) if all_of_them or not is_installed else None
        if text is not None:
            is_run = path in loaded and loaded[path] is not sys.modules.get("__main__")
            yield Source(text, is_run=is_run, is_installed=is_installed, is_library=_is_of_library(path))


def may_change_others(modules: Iterable[str]) -> bool:
    """Return whether one of these modules, which are left to the runs, may change what imports after it find.

    A module without a source is in C, and sets what is its own.
    """
    texts = [_text(path, None) for path in map(file_of, modules) if path.endswith(".py")]
    return any(map(changes_others, filter(None, texts)))


def _patching(loaded: dict[str, Any], unloaded: Iterable[str]) -> list[str]:
    """Return the calls in installed packages that may replace parts of the standard library, as `celery -P gevent`."""
    if not any(map(file_of, _PATCHING)):
        return []
    others = [path for path in sorted({*loaded, *unloaded}) if not any(f"/{name}/" in path for name in _PATCHING)]
    texts = [_text(path, loaded.get(path)) for path in others if _is_installed(path)]
    # Other packages have functions of the same names for themselves.
    theirs = [text for text in texts if text and any(name.encode() in text for name in _PATCHING)]
    return [*filter(None, map(patching_call, theirs))]


def _is_installed(path: str) -> bool:
    return _is_of_library(path) or _is_of_package(path)


def _is_of_package(path: str) -> bool:
    return "/site-packages/" in path or "/dist-packages/" in path


def _is_of_library(path: str) -> bool:
    return path.startswith(os.path.dirname(os.__file__) + "/") and not _is_of_package(path)


def _text(path: str, module: Any) -> bytes | None:
    """Return a source, which may be in an archive; None if it is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        with contextlib.suppress(AttributeError, OSError):
            return bytes(module.__spec__.loader.get_data(path))
        return None


def file_of(name: str) -> str:
    """Return the file of a module that is not loaded, without importing anything; or nothing."""
    path: Any = None
    spec: Any = None
    parts = name.split(".")
    # A finder may be anybody's, and the path of a package in several parts asks for its parent.
    with contextlib.suppress(Exception):
        for end in range(1, len(parts) + 1):
            spec = _find(".".join(parts[:end]), path)
            if spec is None:
                return ""
            path = spec.submodule_search_locations
        return str(spec.origin or "")
    return ""


def _find(name: str, path: Any) -> Any:
    finders: list[Any] = [*sys.meta_path]
    specs = (finder.find_spec(name, path) for finder in finders if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)
