"""The import hook of a pack: ``PathFinder`` calls it first, and continues as usual if it returns nothing.

Invariant: it returns a spec only for a module

- that is in the pack, and whose file has not changed since it was packed, by its size and time, or by its content where
  only its time is another;
- that no earlier entry of the path hides;
- for which the interpreter would have called ``PathFinder``, which would have used ``FileFinder`` for the directory.

So every finder before, around or in place of ``PathFinder``, and every hook that takes over directories, keeps its
precedence, even if it is installed later. A module from a pack has the ``__file__``, ``__cached__``, ``__spec__`` and
loader interface of a module from its file, so resources, metadata and tracebacks work as before.

A directory of ``sys.path`` that has not changed since packing is not listed again: its stamp is compared once.

Things that do not work:

- Trusting a directory's modification time for its files: editing a file in place does not change it. The finder does
  so only where the pack says so.
- A finder of its own on ``sys.meta_path``: finders that are installed later come between it and ``PathFinder``. Some
  wrap ``PathFinder``, and the pack would not be used.
"""

import gc
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader, FileFinder, PathFinder, SourceFileLoader, cache_from_source
from _imp import extension_suffixes
from _io import FileIO
from posix import scandir, stat, write
from zipimport import zipimporter

from .container import (
    EXTENSION,
    IS_PACKAGE,
    KIND,
    LATE,
    MTIME_NS,
    NAMES,
    PATH,
    SIZE,
    SOURCE,
    BadPack,
    code_of,
    digest,
    stamp,
)

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

_SUFFIXES = (".py", ".pyc", *extension_suffixes())
_OPT = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""
_RESTING = 500_009
"""The collector's threshold while a module's body runs: more objects than nearly all bodies make.

It is a number that no other code is likely to set, so that it can be recognised. 0 would not do: a body may set 0 to
switch the collector off, or read 0 as the usual value and restore it later.
"""
_SECOND_NS = 1_000_000_000
_FROZEN = gc.get_freeze_count()
"""The number of objects that the interpreter itself has frozen (CPython 3.12 does)."""
_CAN_AGE = "t" not in sys.abiflags
"""Without a GIL there are no generations, and freezing stops all threads."""


def unseen(function: "Any") -> "Any":
    """Give a function the file name of the import system, whose frames tracebacks and warnings pass over.

    (``remove_importlib_frames`` in Python/import.c, ``is_internal_filename`` in Python/_warnings.c.)
    """
    function.__code__ = function.__code__.replace(co_filename=SourceFileLoader.exec_module.__code__.co_filename)
    return function


class PackLoader(SourceFileLoader):
    """A source loader that takes the code from the map, once: on a second request the file may have changed.

    Data, resources and source come from the files, as usual.
    """

    def __init__(self, name: str, entry: "tuple[Any, ...]", area: memoryview) -> None:
        super().__init__(name, entry[PATH])
        self._entry = entry
        self._area = area

    @unseen
    def get_code(self, fullname: str) -> "CodeType | None":
        """Return the module's code object; from its file if its bytes in the pack are damaged."""
        own: Any = self.__dict__
        entry = own.pop("_entry", None) if fullname == self.name else None
        if entry is not None:
            try:
                code: CodeType = code_of(entry, own.pop("_area"))
                return code
            except BadPack as problem:
                warn_of(entry[PATH], str(problem))
        return super().get_code(fullname)

    @unseen
    def exec_module(self, module: "ModuleType") -> None:
        """Run the module's body without garbage collection: imports create next to no garbage."""
        usual = _rest()
        try:
            super().exec_module(module)
        finally:
            if usual:
                _wake(usual)

    def __reduce__(self) -> "tuple[Any, ...]":
        """Copy as an ordinary source loader: the pack's map belongs to this process."""
        return SourceFileLoader, (self.name, self.path)


class PackFinder:
    """Find modules in a pack: ``entries`` to ``roots`` are as :func:`container.read` returns them.

    ``late`` makes the loader of a module that is to be loaded late.
    """

    def __init__(
        self,
        entries: "dict[str, tuple[Any, ...]]",
        area: memoryview,
        directories: "dict[str, tuple[int, int, int]]",
        roots: "dict[str, tuple[Any, ...]]",
        late: "Callable[[str, tuple[Any, ...], memoryview], PackLoader]" = PackLoader,
    ) -> None:
        self._entries = entries
        self._area = area
        self._directories = directories
        self._roots = roots
        self._late = late
        self._listings: dict[str, frozenset[str]] = {}
        self._stamps: dict[str, tuple[int, int, int] | None] = {}
        self._hooks = _usual_hooks()

    def find_spec(self, name: str, path: "Any" = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a packed module, or None; ``path`` is searched, or ``sys.path`` without it."""
        entry = self._entries.get(name)
        if entry is None or not self._hooks or sys.path_hooks[: len(self._hooks)] != self._hooks:
            return None
        folder = entry[PATH].rpartition("/")[0]
        is_fresh = self._is_unchanged(folder) or _is_fresh(entry)
        base = folder.rpartition("/")[0] if entry[IS_PACKAGE] else folder
        if not _is_directory(base) or self._is_hidden(name, base, sys.path if path is None else path):
            return None
        if not is_fresh:
            warn_of(entry[PATH], "it has changed since it was packed; pack again")
            return None
        spec = ModuleSpec(name, self._loader(name, entry), origin=entry[PATH], is_package=entry[IS_PACKAGE])
        if entry[IS_PACKAGE]:
            spec.submodule_search_locations = [folder]
        spec.has_location = True
        if entry[KIND] != EXTENSION:
            spec.cached = _cached(entry[PATH], folder)
        return spec

    def _loader(self, name: str, entry: "tuple[Any, ...]") -> "ExtensionFileLoader | PackLoader":
        if entry[KIND] == EXTENSION:
            return ExtensionFileLoader(name, entry[PATH])
        return (self._late if entry[KIND] == LATE else PackLoader)(name, entry, self._area)

    def _is_unchanged(self, directory: str) -> bool:
        """Return whether a directory, judged by its stamp, has the same entries as when it was packed."""
        return directory in self._directories and self._directories[directory] == self._stamp(directory)

    def _stamp(self, directory: str) -> "tuple[int, int, int] | None":
        """Return the stamp of a directory, or None if the directory does not exist; read once per process."""
        stamps = self._stamps  # another thread may replace the dictionary
        if directory in stamps:
            return stamps[directory]
        try:
            found = stamp(directory)
        except OSError:
            found = None
        stamps[directory] = found
        return found

    def _is_hidden(self, name: str, base: str, path: "Any") -> bool:
        """Return whether an entry of the path before ``base`` may have this module, or ``base`` is not in the path."""
        for directory in path:
            if not isinstance(directory, str):
                continue  # the import system ignores it too
            if directory == base:
                return False
            if self._has(directory, name):
                return True
        return True

    def _has(self, directory: str, name: str) -> bool:
        """Return whether an entry of the path may have a module; if in doubt True, and ``PathFinder`` searches."""
        listings = self._listings  # another thread may replace the dictionary
        names = listings.get(directory)
        if names is None:
            if not directory.startswith("/"):
                return True  # a relative entry depends on the current directory
            if not _is_directory(directory):
                importer: Any = sys.path_importer_cache.get(directory)
                # None where the import system found no importer for the entry, and no longer tries.
                return importer is not None and importer.find_spec(name, None) is not None
            names = self._listing(directory)
            if names is None:
                return directory not in sys.path_importer_cache
            listings[directory] = names
        return name.rpartition(".")[2] in names

    def _listing(self, directory: str) -> frozenset[str] | None:
        root = self._roots.get(directory)
        if root is not None and root[:NAMES] == self._stamp(directory):
            names: frozenset[str] = root[NAMES]
            return names
        return top_level(directory)

    def invalidate_caches(self) -> None:
        """Discard what is known of the directories."""
        self._stamps = {}
        self._listings = {}

    def stand_in(self) -> None:
        """Make ``PathFinder`` itself, but no subclass of it, call this finder first from now on."""
        paths: Any = PathFinder
        plainly, forget = paths.find_spec.__func__, paths.invalidate_caches

        @unseen
        def find_spec(cls: "Any", fullname: str, path: "Any" = None, target: object = None) -> "Any":
            """Try to find a spec for 'fullname' on sys.path or 'path'."""
            spec = None
            if cls is PathFinder:
                try:
                    if path is not None and iter(path) is path:
                        path = list(path)  # an iterator can be used up only once, and two finders search it
                    spec = self.find_spec(fullname, path)
                except Exception:  # noqa: BLE001 (importers of others raise it again below)
                    spec = None
            return plainly(cls, fullname, path, target) if spec is None else spec

        def invalidate_caches() -> None:
            """Invalidate the caches of the finders of entries of the path."""
            self.invalidate_caches()
            forget()

        paths.find_spec = classmethod(find_spec)
        paths.invalidate_caches = staticmethod(invalidate_caches)


def _rest() -> int:
    """Pause the garbage collector; return the threshold to restore, or 0 if it is paused already, or off.

    The threshold is raised, ``gc.disable()`` is not called: a body that switches the collector off, or sets the
    threshold, takes effect. If several threads import, the first to finish ends the pause for all.
    """
    usual = gc.get_threshold()[0]
    if not (gc.isenabled() and 0 < usual < _RESTING):
        return 0
    gc.set_threshold(_RESTING)
    return usual


def _wake(usual: int) -> None:
    """End the pause, unless other code has ended it."""
    if gc.get_threshold()[0] == _RESTING:
        if gc.isenabled():
            _age()
        gc.set_threshold(usual)


def _age() -> None:
    """Move all objects to the oldest generation without a collection: most objects made by imports live on.

    Otherwise the first allocation after the imports would make the collector traverse all of these objects, and
    later allocations again. The oldest generation is collected as usual. Objects that the program has frozen stay
    frozen.
    """
    if _CAN_AGE and gc.get_freeze_count() <= _FROZEN:
        gc.freeze()
        gc.unfreeze()


def _cached(path: str, folder: str) -> str:
    """Return the path of a source file's .pyc file."""
    if sys.pycache_prefix is not None:
        return cache_from_source(path)
    stem = path.rpartition("/")[2].removesuffix(".py")
    return f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}{_OPT}.pyc"


def _is_fresh(entry: "tuple[Any, ...]") -> bool:
    try:
        found = stat(entry[PATH])
    except OSError:
        return False
    if entry[KIND] == EXTENSION:
        return True  # it is loaded from its own file, whatever that holds
    if found.st_size != entry[SIZE]:
        return False
    return _is_time(found.st_mtime_ns, entry[MTIME_NS]) or _is_source(entry)


def _is_time(found_ns: int, packed_ns: int) -> bool:
    """Return whether a file has the time it had when it was packed, or that time in whole seconds.

    Container images keep whole seconds, cut or rounded. A ``.pyc`` file keeps them too, and is as exact.
    """
    if found_ns == packed_ns:
        return True
    return found_ns % _SECOND_NS == 0 and found_ns in (
        packed_ns // _SECOND_NS * _SECOND_NS,
        (packed_ns + _SECOND_NS // 2) // _SECOND_NS * _SECOND_NS,
    )


def _is_source(entry: "tuple[Any, ...]") -> bool:
    """Return whether a file with another time still holds the packed source, as in an image whose times were set."""
    try:
        with FileIO(entry[PATH]) as file:
            source: bytes = file.readall()
    except OSError:
        return False
    packed: bytes = entry[SOURCE]
    return digest(source) == packed


def _usual_hooks() -> "list[Any]":
    """Return the path hooks up to the interpreter's own for directories; empty if a foreign hook precedes it."""
    for index, hook in enumerate(sys.path_hooks):
        if _is_for_directories(hook):
            return sys.path_hooks[: index + 1]
        if hook is not zipimporter:
            break
    return []


def _is_for_directories(hook: "Any") -> bool:
    """Return whether a hook is the interpreter's own for directories, with the ordinary source loader."""
    code = FileFinder.path_hook().__code__
    if getattr(hook, "__code__", None) is not code:
        return False
    loaders = hook.__closure__[code.co_freevars.index("loader_details")].cell_contents
    return any(loader is SourceFileLoader for loader, _ in loaders)


def _is_directory(entry: str) -> bool:
    """Return whether the import system treats a path entry as a directory, or has not examined it yet."""
    importer: Any = sys.path_importer_cache.get(entry, FileFinder)
    return importer is FileFinder or (type(importer) is FileFinder and _loads_sources(importer))


def _loads_sources(importer: "Any") -> bool:
    """Return whether a ``FileFinder`` has the ordinary source loader."""
    return any(loader is SourceFileLoader for _, loader in importer._loaders)


def top_level(directory: str) -> frozenset[str] | None:
    """Return the names of the modules, packages and other directories in a directory; None if it cannot be listed."""
    try:
        with scandir(directory or ".") as entries:
            return frozenset(
                one.name.partition(".")[0] for one in entries if one.name.endswith(_SUFFIXES) or one.is_dir()
            )
    except OSError:
        return None


_said: set[str] = set()
"""Reasons for which a module was not taken from the pack, and which were written already."""
_SILENT = "silent"


def warn(why: str) -> None:
    """Write to stderr why the pack is not used."""
    _write(f"warning: the pack is not used: {why}\n")


def warn_of(path: str, why: str) -> None:
    """Write to stderr why one module is not taken from the pack; only for the first module with this reason."""
    if not _said.intersection((why, _SILENT)):
        _said.add(why)
        _write(f"warning: {path} is imported from its file, and not from the pack: {why}\n")


def _write(line: str) -> None:
    """Write one line to stderr, if there is one."""
    stream: Any = sys.stderr
    is_own = stream is sys.__stderr__
    try:
        if is_own and stream is not None:
            stream.flush()
            # Past the buffer, in which the line could remain.
            write(stream.fileno(), line.encode(stream.encoding, "backslashreplace"))
        elif stream is not None:
            stream.write(line)
    except (OSError, ValueError):
        pass  # a full disk, a closed stream: the program continues and ends as without the warning


def be_silent() -> None:
    """Suppress warnings about single modules: another process writes them."""
    _said.add(_SILENT)
