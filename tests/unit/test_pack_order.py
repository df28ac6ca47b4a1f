"""Precedence of a pack: finders before, in place of or around PathFinder come first, as without a pack."""

import importlib
import importlib.abc
import importlib.util
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.machinery import FileFinder, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unsnarl.pack import container, finder, recorder, start


class Other(importlib.abc.MetaPathFinder):
    """A finder that serves one module from a file of its own, or refuses it."""

    def __init__(self, path: Path | None, name: str = "ordered") -> None:
        self.path = path
        self.name = name
        self.asked: list[str] = []

    def find_spec(self, fullname: str, _path: object, _target: object = None, /) -> ModuleSpec | None:
        self.asked.append(fullname)
        if fullname != self.name:
            return None
        if self.path is None:
            raise ImportError("not this one")
        return importlib.util.spec_from_file_location(fullname, self.path)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A module of the same name elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "ordered.py"
    path.write_text("BY = 'another'\n")
    return path


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A pack that has the module ``ordered``; the state of the import system is restored afterwards."""
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "ordered.py").write_text("BY = 'the path'\n")
    (tmp_path / "the.pack").write_bytes(recorder.build({"ordered": str(lib / "ordered.py")}))
    # As in a fresh interpreter: pytest has finders of its own.
    own = [each for each in sys.meta_path if getattr(each, "__module__", "").startswith("_frozen_importlib")]
    monkeypatch.setattr(sys, "meta_path", own)
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    monkeypatch.setattr(sys, "path", [str(lib), *sys.path])
    monkeypatch.setattr(start, "_hasten_end", lambda: None)
    for name in ("find_spec", "invalidate_caches"):
        monkeypatch.setattr(PathFinder, name, vars(PathFinder)[name])
    yield str(tmp_path / "the.pack")
    sys.modules.pop("ordered", None)


@pytest.fixture
def pack(made: str) -> None:
    """The pack in use."""
    assert start.install(made)


def served() -> tuple[str, bool]:
    """Import the module; return its value, and whether it is from the pack."""
    module = importlib.import_module("ordered")
    return module.BY, isinstance(module.__loader__, finder.PackLoader)


FROM_PACK = ("the path", True)
FROM_PATH = ("the path", False)
FROM_OTHER = ("another", False)


def put_first(one: Any) -> None:
    sys.meta_path.insert(0, one)


def put_second(one: Any) -> None:
    sys.meta_path.insert(1, one)


def put_before_the_paths(one: Any) -> None:
    finders: list[Any] = sys.meta_path
    finders.insert(finders.index(PathFinder), one)


def put_in_a_new_list(one: Any) -> None:
    sys.meta_path = [one, *sys.meta_path]


PLACES = [put_first, put_second, put_before_the_paths, put_in_a_new_list]


@pytest.mark.usefixtures("pack")
def test_without_another_the_pack_serves() -> None:
    assert served() == FROM_PACK


@pytest.mark.parametrize("put", PLACES)
@pytest.mark.usefixtures("pack")
def test_a_finder_that_came_later_serves_what_it_has(put: Callable[[Any], None], other: Path) -> None:
    put(Other(other))
    assert served() == FROM_OTHER


@pytest.mark.parametrize("put", PLACES)
@pytest.mark.usefixtures("pack")
def test_a_finder_that_came_later_refuses_what_it_wants(put: Callable[[Any], None]) -> None:
    put(Other(None))
    with pytest.raises(ImportError, match="not this one"):
        served()


@pytest.mark.parametrize("put", PLACES)
@pytest.mark.usefixtures("pack")
def test_a_finder_with_nothing_to_say_is_asked_once(put: Callable[[Any], None], other: Path) -> None:
    one = Other(other, "unordered")
    put(one)
    assert served() == FROM_PACK
    assert one.asked.count("ordered") == 1


@pytest.mark.usefixtures("pack")
def test_a_finder_behind_the_paths_comes_after_the_pack(other: Path) -> None:
    sys.meta_path.append(Other(other))
    assert served() == FROM_PACK


@pytest.mark.parametrize("put", PLACES)
@pytest.mark.usefixtures("pack")
def test_a_finder_that_asks_all_the_others_gets_an_answer(put: Callable[[Any], None]) -> None:
    class Asking:
        @classmethod
        def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            others = (each.find_spec(name, path, target) for each in sys.meta_path if each is not cls)
            return next((spec for spec in others if spec is not None), None)

    put(Asking)
    assert served() in (FROM_PACK, FROM_PATH)


@pytest.mark.usefixtures("pack")
def test_a_finder_around_the_paths_gets_what_the_pack_has(other: Path) -> None:
    """As the finder of the AWS command line, which finds some packages in further places."""

    class Around:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            return PathFinder.find_spec("ordered" if name == "alias" else name, path, target)

    put_before_the_paths(Around)
    assert served() == FROM_PACK
    spec = importlib.util.find_spec("alias")
    assert spec is not None
    assert (spec.name, type(spec.loader)) == ("ordered", finder.PackLoader)


@pytest.mark.usefixtures("pack")
def test_the_list_of_finders_is_as_it_was() -> None:
    assert [getattr(each, "__name__", "") for each in sys.meta_path] == [
        "BuiltinImporter",
        "FrozenImporter",
        "PathFinder",
    ]


@pytest.mark.usefixtures("pack")
def test_a_finder_derived_from_the_paths_is_its_own() -> None:
    class Derived(PathFinder):
        pass

    finders: list[Any] = sys.meta_path
    finders[finders.index(PathFinder)] = Derived
    assert served() == FROM_PATH


@pytest.mark.usefixtures("pack")
def test_what_was_looked_up_is_forgotten_with_the_rest(other: Path) -> None:
    sys.path.insert(0, str(other.parent))
    os.rename(other, other.parent / "later.py")
    assert served() == FROM_PACK
    os.rename(other.parent / "later.py", other)
    importlib.invalidate_caches()
    del sys.modules["ordered"]
    assert served() == FROM_OTHER


@pytest.mark.usefixtures("pack")
def test_what_stands_in_the_place_of_the_paths_finder_serves(other: Path) -> None:
    finders: list[Any] = sys.meta_path
    finders[finders.index(PathFinder)] = Other(other)
    assert served() == FROM_OTHER


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.usefixtures("pack")
def test_a_hook_for_directories_that_came_later_serves(place: int) -> None:
    class Loader(SourceFileLoader):
        def exec_module(self, module: ModuleType) -> None:
            vars(module)["BY"] = "the hook"

    sys.path_hooks.insert(place, FileFinder.path_hook((Loader, [".py"])))
    sys.path_importer_cache.clear()
    assert served() == ("the hook", False)


@pytest.mark.parametrize("place", [0, 1])
def test_a_hook_for_directories_that_was_there_before_serves(made: str, place: int) -> None:
    class Loader(SourceFileLoader):
        pass

    sys.path_hooks.insert(place, FileFinder.path_hook((Loader, [".py"])))
    assert start.install(made)
    assert served() == FROM_PATH


@pytest.mark.usefixtures("pack")
def test_what_was_put_in_charge_of_the_directory_serves() -> None:
    class Importer:
        @staticmethod
        def find_spec(_name: str, _target: Any = None) -> None:
            return None

    sys.path_importer_cache[sys.path[0]] = Importer
    with pytest.raises(ModuleNotFoundError):
        served()


def archive(path: Path, name: str) -> str:
    """Write an archive with a module of this name."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", "BY = 'an archive'\n")
    return str(path)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.usefixtures("pack")
def test_an_archive_before_the_directory_hides_what_it_has(tmp_path: Path, is_known: bool) -> None:
    sys.path.insert(0, archive(tmp_path / "some.zip", "ordered"))
    if is_known:
        assert importlib.util.find_spec("absent") is None
    assert served() == ("an archive", False)


@pytest.mark.usefixtures("pack")
def test_an_archive_hides_nothing_else(tmp_path: Path) -> None:
    sys.path.insert(0, archive(tmp_path / "some.zip", "unordered"))
    assert importlib.util.find_spec("absent") is None  # now the importer of that path entry is cached
    assert served() == FROM_PACK


@pytest.mark.usefixtures("pack")
def test_an_entry_of_the_path_that_is_not_there_hides_nothing(tmp_path: Path) -> None:
    sys.path.insert(0, str(tmp_path / "nowhere"))
    assert importlib.util.find_spec("absent") is None
    assert served() == FROM_PACK


def test_an_entry_before_the_packages_hides_what_it_has(tmp_path: Path) -> None:
    """A package may have several directories; the pack knows the module in the second."""
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
    (second / "part.py").write_text("")
    pack = finder.PackFinder(*container.read(memoryview(recorder.build({"package.part": str(second / "part.py")}))))
    path = [str(first), str(second)]
    assert pack.find_spec("package.part", path) is not None
    (first / "part.py").write_text("")
    pack.invalidate_caches()
    assert pack.find_spec("package.part", path) is None


@pytest.mark.usefixtures("pack")
def test_a_path_that_can_be_gone_through_once_is_gone_through_from_its_begin(other: Path, tmp_path: Path) -> None:
    lib, elsewhere = str(tmp_path / "lib"), str(other.parent)
    for path, origin in (([elsewhere, lib], str(other)), ([elsewhere], str(other)), ([lib], f"{lib}/ordered.py")):
        once: Any = iter(path)
        found = PathFinder.find_spec("ordered", once)
        assert found is not None
        assert found.origin == origin


@pytest.mark.usefixtures("pack")
def test_an_importer_that_fails_the_pack_leaves_the_module_to_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before CPython 3.12, PathFinder accepts importers that only have ``find_module``."""

    class Broken:
        def __init__(self) -> None:
            self.asked = 0

        def find_spec(self, _name: str, _target: object = None) -> None:
            self.asked += 1
            if self.asked == 1:
                raise AttributeError("not yet")

    monkeypatch.setitem(sys.path_importer_cache, "/virtual:", Broken())
    monkeypatch.setattr(sys, "path", ["/virtual:", *sys.path])
    assert served() == FROM_PATH


@pytest.mark.usefixtures("pack")
def test_a_directory_that_has_kept_a_foreign_finder_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Foreign(SourceFileLoader):
        pass

    lib = str(tmp_path / "lib")
    monkeypatch.setitem(sys.path_importer_cache, lib, FileFinder(lib, (Foreign, [".py"])))
    module = importlib.import_module("ordered")
    assert type(module.__loader__) is Foreign


@pytest.mark.usefixtures("pack")
def test_the_current_directory_is_looked_at_where_it_is_now(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(other.parent.parent)
    assert importlib.util.find_spec("ordered") is not None
    monkeypatch.chdir(other.parent)
    assert served() == FROM_OTHER
