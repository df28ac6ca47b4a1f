"""The import hook of a pack: first on ``sys.meta_path``, silent where it knows nothing.

Invariant: it answers only for names in the pack whose file is as it was packed,
and which nothing earlier on the path hides; everything else is the business of
the finders behind it. A module from a pack has the ``__file__``, ``__cached__``,
``__spec__`` and loader interface of one from its file, so resources, metadata and
tracebacks work as before.

Things that do not work: trusting the modification time of a directory (a file
edited in place does not change it); so that is done only where the pack says so.
"""

import gc
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader
from _imp import extension_suffixes
from posix import scandir, stat

from .container import EXTENSION, IS_PACKAGE, KIND, LATE, MTIME_NS, PATH, SIZE, BadPack, code_of, stamp

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

_SUFFIXES = (".py", ".pyc", *extension_suffixes())
_OPT = f".opt-{sys.flags.optimize}" if sys.flags.optimize else ""


class PackLoader(SourceFileLoader):
    """A source loader whose code comes from the map; data, resources and source as ever."""

    def __init__(self, name: str, entry: "tuple[Any, ...]", area: memoryview) -> None:
        super().__init__(name, entry[PATH])
        self._entry = entry
        self._area = area

    def get_code(self, fullname: str) -> "CodeType | None":
        """Return the code object of the module, from its file if the pack is damaged there."""
        if fullname == self.name:
            try:
                code: CodeType = code_of(self._entry, self._area)
                return code
            except BadPack as problem:
                warn(str(problem))
        return super().get_code(fullname)

    def exec_module(self, module: "ModuleType") -> None:
        """Run the module's body, without looking for garbage: imports make next to none."""
        is_outermost = gc.isenabled()
        if is_outermost:
            gc.disable()
        try:
            super().exec_module(module)
        finally:
            if is_outermost:
                _age()
                gc.enable()


class PackFinder:
    """Find modules in a pack: ``entries``, ``area`` and ``directories`` as :func:`container.read` returns them.

    ``late`` makes the loader of a module that is to be loaded late.
    """

    def __init__(
        self,
        entries: "dict[str, tuple[Any, ...]]",
        area: memoryview,
        directories: "dict[str, tuple[int, int, int]]",
        late: "Callable[[str, tuple[Any, ...], memoryview], PackLoader]" = PackLoader,
    ) -> None:
        self._entries = entries
        self._area = area
        self._directories = directories
        self._late = late
        self._listings: dict[str, frozenset[str]] = {}
        self._unchanged: dict[str, bool] = {}

    def find_spec(self, name: str, path: "Any" = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a packed module, or None."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        folder = entry[PATH].rpartition("/")[0]
        if not self._is_unchanged(folder) and not _is_fresh(entry):
            return None
        base = folder.rpartition("/")[0] if entry[IS_PACKAGE] else folder
        if base not in path if path is not None else self._is_hidden(name, base):
            return None
        spec = ModuleSpec(name, self._loader(name, entry), origin=entry[PATH], is_package=entry[IS_PACKAGE])
        if entry[IS_PACKAGE]:
            spec.submodule_search_locations = [folder]
        spec.has_location = True
        if entry[KIND] != EXTENSION:
            stem = entry[PATH].rpartition("/")[2].removesuffix(".py")
            spec.cached = f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}{_OPT}.pyc"
        return spec

    def _loader(self, name: str, entry: "tuple[Any, ...]") -> "ExtensionFileLoader | PackLoader":
        if entry[KIND] == EXTENSION:
            return ExtensionFileLoader(name, entry[PATH])
        return (self._late if entry[KIND] == LATE else PackLoader)(name, entry, self._area)

    def _is_unchanged(self, directory: str) -> bool:
        """Say whether a directory, by its stamp, has the entries it had; asked once in a process."""
        known = self._unchanged.get(directory)
        if known is None:
            known = self._unchanged[directory] = directory in self._directories and self._is_as_packed(directory)
        return known

    def _is_as_packed(self, directory: str) -> bool:
        try:
            return stamp(directory) == self._directories[directory]
        except OSError:
            return False

    def _is_hidden(self, name: str, base: str) -> bool:
        """Say whether a directory before ``base`` has a file that may be this module."""
        for directory in sys.path:
            if directory == base:
                return False
            listing = self._listings.get(directory)
            if listing is None:
                listing = self._listings[directory] = _top_level(directory)
            if name in listing:
                return True
        return True

    def invalidate_caches(self) -> None:
        """Look at the directories again."""
        self._listings.clear()
        self._unchanged.clear()


def _age() -> None:
    """Have the collector take all there is for old, without a look at it: what imports make mostly stays.

    Else the first allocation after them would have it walk through everything they have made, and later ones
    again. The oldest generation is collected as ever. What the program has frozen itself stays frozen.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _is_fresh(entry: "tuple[Any, ...]") -> bool:
    try:
        found = stat(entry[PATH])
    except OSError:
        return False
    return (found.st_mtime_ns, found.st_size) == (entry[MTIME_NS], entry[SIZE])


def _top_level(directory: str) -> frozenset[str]:
    """Return the names of the modules, packages and other directories in a directory."""
    try:
        with scandir(directory or ".") as entries:
            return frozenset(
                one.name.partition(".")[0] for one in entries if one.name.endswith(_SUFFIXES) or one.is_dir()
            )
    except OSError:
        return frozenset()


def warn(why: str) -> None:
    """Say in one line why a pack, or a part of it, is not used."""
    if sys.stderr is not None:
        sys.stderr.write(f"warning: the pack is not used: {why}\n")
