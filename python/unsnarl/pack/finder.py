"""The import hook of a pack: the path's finder asks it first, and goes on where it knows nothing.

Invariant: it answers only for names in the pack whose file is as it was packed,
and which nothing earlier on the path hides, and only where the path's finder would have been
asked and would have left the directory to the interpreter's own finder of files. So whoever
stands before the path's finder, in its place or around it, and whatever hook takes over
directories, comes first, however late it came. A module from a pack has the ``__file__``, ``__cached__``,
``__spec__`` and loader interface of one from its file, so resources, metadata and
tracebacks work as before.

A directory of ``sys.path`` that is as it was when packed is not listed again: its stamp is compared once.

Things that do not work: trusting the modification time of a directory for its files (one that is
edited in place does not change it); so that is done only where the pack says so. A place of its own on
``sys.meta_path`` (finders that come later are put between it and the path's; some wrap that one, and nothing would be
left for the pack).
"""

import gc
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader, FileFinder, PathFinder, SourceFileLoader, cache_from_source
from _imp import extension_suffixes
from posix import scandir, stat, write
from zipimport import zipimporter

from .container import EXTENSION, IS_PACKAGE, KIND, LATE, MTIME_NS, NAMES, PATH, SIZE, BadPack, code_of, stamp

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

_SUFFIXES = (".py", ".pyc", *extension_suffixes())
_OPT = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""
_RESTING = 500_009
"""How many young objects wake the collector while a body runs: more than nearly all make, and no number of others.

Not 0, which a body may set itself to switch the collector off, or take for the usual value and set again later.
"""
_FROZEN = gc.get_freeze_count()
"""What the interpreter itself has frozen (CPython 3.12 does)."""
_CAN_AGE = "t" not in sys.abiflags
"""Without a GIL there are no generations, and freezing stops all threads."""


def unseen(function: "Any") -> "Any":
    """Have tracebacks and warnings pass over a function, as they do over the import system's, which they know by file.

    (``remove_importlib_frames`` in Python/import.c, ``is_internal_filename`` in Python/_warnings.c.)
    """
    function.__code__ = function.__code__.replace(co_filename=SourceFileLoader.exec_module.__code__.co_filename)
    return function


class PackLoader(SourceFileLoader):
    """A source loader whose code comes from the map, once: what is asked for again may have been changed meanwhile.

    Data, resources and source as ever.
    """

    def __init__(self, name: str, entry: "tuple[Any, ...]", area: memoryview) -> None:
        super().__init__(name, entry[PATH])
        self._entry = entry
        self._area = area

    @unseen
    def get_code(self, fullname: str) -> "CodeType | None":
        """Return the code object of the module, from its file if the pack is damaged there."""
        own: Any = self.__dict__
        entry = own.pop("_entry", None) if fullname == self.name else None
        if entry is not None:
            try:
                code: CodeType = code_of(entry, own.pop("_area"))
                return code
            except BadPack as problem:
                warn(str(problem), once="damaged")
        return super().get_code(fullname)

    @unseen
    def exec_module(self, module: "ModuleType") -> None:
        """Run the module's body, without looking for garbage: imports make next to none."""
        usual = _rest()
        try:
            super().exec_module(module)
        finally:
            if usual:
                _wake(usual)

    def __reduce__(self) -> "tuple[Any, ...]":
        """Copy as what it stands for: the pack is this process's."""
        return SourceFileLoader, (self.name, self.path)


class PackFinder:
    """Find modules in a pack: ``entries`` to ``places`` are as :func:`container.read` returns them.

    ``late`` makes the loader of a module that is to be loaded late.
    """

    def __init__(
        self,
        entries: "dict[str, tuple[Any, ...]]",
        area: memoryview,
        directories: "dict[str, tuple[int, int, int]]",
        places: "dict[str, tuple[Any, ...]]",
        late: "Callable[[str, tuple[Any, ...], memoryview], PackLoader]" = PackLoader,
    ) -> None:
        self._entries = entries
        self._area = area
        self._directories = directories
        self._places = places
        self._late = late
        self._listings: dict[str, frozenset[str]] = {}
        self._stamps: dict[str, tuple[int, int, int] | None] = {}
        self._hooks = _usual_hooks()

    def find_spec(self, name: str, path: "Any" = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a packed module, or None; ``path`` is where it is sought, if not in ``sys.path``."""
        entry = self._entries.get(name)
        if entry is None or not self._hooks or sys.path_hooks[: len(self._hooks)] != self._hooks:
            return None
        folder = entry[PATH].rpartition("/")[0]
        is_fresh = self._is_unchanged(folder) or _is_fresh(entry)
        base = folder.rpartition("/")[0] if entry[IS_PACKAGE] else folder
        if not _is_directory(base) or self._is_hidden(name, base, sys.path if path is None else path):
            return None
        if not is_fresh:
            warn(f"{entry[PATH]} is not as it was packed; pack anew", once="stale")
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
        """Say whether a directory, by its stamp, has the entries it had."""
        return directory in self._directories and self._directories[directory] == self._stamp(directory)

    def _stamp(self, directory: str) -> "tuple[int, int, int] | None":
        """Return the stamp of a directory, or None if it is not there; asked once in a process."""
        stamps = self._stamps  # another thread may put a new one in its place
        if directory in stamps:
            return stamps[directory]
        try:
            found = stamp(directory)
        except OSError:
            found = None
        stamps[directory] = found
        return found

    def _is_hidden(self, name: str, base: str, path: "Any") -> bool:
        """Say whether ``base`` is not in the path, or an entry before it has a file that may be this module."""
        for directory in path:
            if not isinstance(directory, str):
                continue  # the import system passes it over too
            if directory == base:
                return False
            if self._has(directory, name):
                return True
        return True

    def _has(self, directory: str, name: str) -> bool:
        """Say whether an entry of the path may have a module; if in doubt, the path's finder looks, and knows."""
        listings = self._listings  # another thread may put a new one in its place
        names = listings.get(directory)
        if names is None:
            if not directory.startswith("/"):
                return True  # where that is depends on the current directory
            if not _is_directory(directory):
                importer: Any = sys.path_importer_cache.get(directory)
                # None where the import system has found nothing there to import from, and looks no more.
                return importer is not None and importer.find_spec(name, None) is not None
            names = self._listing(directory)
            if names is None:
                return directory not in sys.path_importer_cache
            listings[directory] = names
        return name.rpartition(".")[2] in names

    def _listing(self, directory: str) -> frozenset[str] | None:
        place = self._places.get(directory)
        if place is not None and place[:NAMES] == self._stamp(directory):
            names: frozenset[str] = place[NAMES]
            return names
        return top_level(directory)

    def invalidate_caches(self) -> None:
        """Look at the directories again."""
        self._stamps = {}
        self._listings = {}

    def stand_in(self) -> None:
        """Have the path's finder ask this one first from now on, and no subclass of it."""
        paths: Any = PathFinder
        plainly, forget = paths.find_spec.__func__, paths.invalidate_caches

        @unseen
        def find_spec(cls: "Any", fullname: str, path: "Any" = None, target: object = None) -> "Any":
            """Try to find a spec for 'fullname' on sys.path or 'path'."""
            spec = None
            if cls is PathFinder:
                try:
                    if path is not None and iter(path) is path:
                        path = list(path)  # both are to see all of it
                    spec = self.find_spec(fullname, path)
                except Exception:  # noqa: BLE001 (what others' importers raise, they raise again below)
                    spec = None
            return plainly(cls, fullname, path, target) if spec is None else spec

        def invalidate_caches() -> None:
            """Invalidate the caches of the finders of entries of the path."""
            self.invalidate_caches()
            forget()

        paths.find_spec = classmethod(find_spec)
        paths.invalidate_caches = staticmethod(invalidate_caches)


def _rest() -> int:
    """Have the collector rest; return the threshold to go back to, or 0 if it rests already, or is off.

    By its threshold, not by ``gc.disable()``: so a body that switches the collector off, or sets the threshold, is
    obeyed. Of several threads that import, the first to end wakes it for all.
    """
    usual = gc.get_threshold()[0]
    if not (gc.isenabled() and 0 < usual < _RESTING):
        return 0
    gc.set_threshold(_RESTING)
    return usual


def _wake(usual: int) -> None:
    """End the rest, if nobody else has."""
    if gc.get_threshold()[0] == _RESTING:
        if gc.isenabled():
            _age()
        gc.set_threshold(usual)


def _age() -> None:
    """Have the collector take all there is for old, without a look at it: what imports make mostly stays.

    Else the first allocation after them would have it walk through everything they have made, and later ones
    again. The oldest generation is collected as ever. What the program has frozen itself stays frozen.
    """
    if _CAN_AGE and gc.get_freeze_count() <= _FROZEN:
        gc.freeze()
        gc.unfreeze()


def _cached(path: str, folder: str) -> str:
    """Return where the interpreter keeps the code of a source."""
    if sys.pycache_prefix is not None:
        return cache_from_source(path)
    stem = path.rpartition("/")[2].removesuffix(".py")
    return f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}{_OPT}.pyc"


def _is_fresh(entry: "tuple[Any, ...]") -> bool:
    try:
        found = stat(entry[PATH])
    except OSError:
        return False
    return (found.st_mtime_ns, found.st_size) == (entry[MTIME_NS], entry[SIZE])


def _usual_hooks() -> "list[Any]":
    """Return the interpreter's own hooks for entries of the path, as they begin; nothing if another comes first."""
    for place, hook in enumerate(sys.path_hooks):
        if _is_for_directories(hook):
            return sys.path_hooks[: place + 1]
        if hook is not zipimporter:
            break
    return []


def _is_for_directories(hook: "Any") -> bool:
    """Say whether a hook is the interpreter's own for directories: with the ordinary loader of sources."""
    code = FileFinder.path_hook().__code__
    if getattr(hook, "__code__", None) is not code:
        return False
    loaders = hook.__closure__[code.co_freevars.index("loader_details")].cell_contents
    return any(loader is SourceFileLoader for loader, _ in loaders)


def _is_directory(entry: str) -> bool:
    """Say whether an entry of the path is one for the import system, or not looked at yet."""
    importer: Any = sys.path_importer_cache.get(entry, FileFinder)
    return importer is FileFinder or (type(importer) is FileFinder and _loads_sources(importer))


def _loads_sources(importer: "Any") -> bool:
    """Say whether a finder of files has the ordinary loader of sources."""
    return any(loader is SourceFileLoader for _, loader in importer._loaders)


def top_level(directory: str) -> frozenset[str] | None:
    """Return the names of the modules, packages and other directories in a directory; None if it is none."""
    try:
        with scandir(directory or ".") as entries:
            return frozenset(
                one.name.partition(".")[0] for one in entries if one.name.endswith(_SUFFIXES) or one.is_dir()
            )
    except OSError:
        return None


_said: set[str] = set()
"""What has been said ``once``."""


def warn(why: str, *, once: str = "") -> None:
    """Say in one line why a pack, or a part of it, is not used; if there is someone to hear it."""
    if once in _said:
        return
    if once:
        _said.add(once)
    line = f"warning: the pack is not used: {why}\n"
    stream: Any = sys.stderr
    is_own = stream is sys.__stderr__
    try:
        if is_own and stream is not None:
            stream.flush()
            write(stream.fileno(), line.encode(stream.encoding, "backslashreplace"))  # nothing stays in a buffer
        elif stream is not None:
            stream.write(line)
    except (OSError, ValueError):
        pass  # a full disk, a closed stream: the program goes on, and ends, as it would


def be_silent() -> None:
    """Say nothing of single modules: another process does."""
    _said.update(("damaged", "stale"))
