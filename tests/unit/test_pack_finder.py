"""Conditions under which the finder uses a packed module, and the time at which its body runs."""

import builtins
import gc
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from unsnarl.pack import container, finder, freshness, late, recorder

WATCHDOG_S = 60


def found(
    modules: dict[str, str], *, by_directory: bool = False, is_late: bool = False, folder: str = ""
) -> finder.PackFinder:
    """Return the finder of a pack of these modules."""
    data = recorder.build(modules, set(modules) if is_late else (), by_directory=by_directory, folder=folder)
    return finder.PackFinder(*container.read(memoryview(data)), late.LateLoader)


@pytest.fixture
def module(tmp_path: Path) -> str:
    """The path of a module in a directory of its own."""
    (tmp_path / "lib").mkdir()
    path = tmp_path / "lib" / "mod.py"
    path.write_text("A = 1\n")
    return str(path)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat directories that were changed just now as settled."""
    monkeypatch.setattr(freshness, "SETTLED_NS", -(10**15))


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat all directories as changed just now."""
    monkeypatch.setattr(freshness, "SETTLED_NS", 10**18)


def replace(path: str) -> None:
    """Replace a file by another, as editors and installers do; the directory's time has to advance."""
    folder = os.path.dirname(path)
    before = container.stamp(folder)
    while container.stamp(folder) == before:
        Path(f"{path}.new").write_text("A = 333\n")
        os.replace(f"{path}.new", path)


def add(path: Path) -> None:
    """Make a file; the time of its directory has to advance."""
    before = container.stamp(str(path.parent))
    path.write_text("A = 333\n")
    while container.stamp(str(path.parent)) == before:
        path.unlink()
        path.write_text("A = 333\n")


@pytest.mark.parametrize("by_directory", [False, True])
@pytest.mark.usefixtures("settled")
def test_a_replaced_source_wins(module: str, by_directory: bool) -> None:
    pack = found({"mod": module}, by_directory=by_directory)
    path = [os.path.dirname(module)]
    assert pack.find_spec("mod", path) is not None
    replace(module)
    pack.invalidate_caches()
    assert pack.find_spec("mod", path) is None


@pytest.mark.parametrize("is_late", [False, True])
def test_a_body_that_is_run_once_more_by_its_loader_is_the_file_s(module: str, is_late: bool) -> None:
    spec = found({"mod": module}, is_late=is_late).find_spec("mod", [os.path.dirname(module)])
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    assert is_late or loaded.A == 1
    assert is_late or vars(spec.loader) == vars(SourceFileLoader("mod", module))
    replace(module)
    spec.loader.exec_module(loaded)
    assert loaded.A == 333


@pytest.mark.usefixtures("settled")
def test_a_source_written_in_place_wins_where_files_are_looked_at(module: str) -> None:
    path = [os.path.dirname(module)]
    packs = [found({"mod": module}, by_directory=by_directory) for by_directory in (False, True)]
    Path(module).write_text("A = 333\n")
    assert [pack.find_spec("mod", path) is None for pack in packs] == [True, False]


@pytest.mark.usefixtures("settled")
def test_only_the_changed_file_of_a_changed_directory_is_left_out(module: str) -> None:
    other = module.replace("mod.py", "other.py")
    Path(other).write_text("B = 1\n")
    pack = found({"mod": module, "other": other}, by_directory=True)
    replace(module)
    path = [os.path.dirname(module)]
    assert pack.find_spec("mod", path) is None
    assert pack.find_spec("other", path) is not None


@pytest.mark.usefixtures("changing")
def test_a_directory_that_was_changed_just_now_is_not_trusted(module: str) -> None:
    assert freshness.stamps([module]) == {}


@pytest.mark.usefixtures("settled")
def test_a_directory_with_a_symbolic_link_is_not_trusted(module: str, tmp_path: Path) -> None:
    assert list(freshness.stamps([module])) == [os.path.dirname(module)]
    (tmp_path / "lib" / "link.py").symlink_to(module)
    assert freshness.stamps([module, str(tmp_path / "lib" / "link.py")]) == {}


def test_only_what_can_be_a_module_hides_one(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = found({"mod": module})
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "bin"), os.path.dirname(module)])
    (tmp_path / "bin" / "mod").write_text("a command of the same name")
    assert pack.find_spec("mod") is not None
    (tmp_path / "bin" / "mod.py").write_text("")
    pack.invalidate_caches()
    assert pack.find_spec("mod") is None


@pytest.fixture
def searched(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in front of the module's on ``sys.path``."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "bin"), os.path.dirname(module)])
    return tmp_path / "bin"


@pytest.mark.usefixtures("settled")
def test_a_new_module_hides_one_in_a_directory_that_was_known(module: str, searched: Path) -> None:
    pack = found({"mod": module}, folder=str(searched))
    assert pack.find_spec("mod") is not None
    add(searched / "mod.py")
    pack.invalidate_caches()
    assert pack.find_spec("mod") is None


@pytest.mark.usefixtures("settled")
def test_a_link_to_nothing_may_hide_a_module_one_day(module: str, searched: Path) -> None:
    (searched / "mod").symlink_to(searched.parent / "later")
    pack = found({"mod": module}, folder=str(searched))
    (searched.parent / "later").mkdir()
    assert pack.find_spec("mod") is None


@pytest.mark.usefixtures("settled")
def test_the_names_of_a_directory_are_known_by_its_stamp(searched: Path) -> None:
    (searched / "one.py").write_text("")
    (searched / "two").mkdir()
    stamp = container.stamp(str(searched))
    assert freshness.roots([str(searched)]) == {str(searched): (*stamp, frozenset(["one", "two"]))}


@pytest.mark.usefixtures("changing")
def test_the_names_of_a_directory_that_was_changed_just_now_are_not_known(searched: Path) -> None:
    assert freshness.roots([str(searched)]) == {}


@pytest.mark.usefixtures("settled")
def test_a_file_system_that_keeps_no_time_of_change_is_not_trusted(
    module: str, searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stamp(path: str) -> tuple[int, int, int]:
        return (os.stat(path).st_mtime_ns, 0, 2)

    monkeypatch.setattr(container, "stamp", stamp)
    assert (freshness.stamps([module]), freshness.roots([str(searched)])) == ({}, {})


def test_an_entry_of_the_path_that_is_no_text_is_passed_over(
    module: str, searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (searched / "mod.py").write_text("")
    others: list[object] = [searched, [], None, os.path.dirname(module)]
    monkeypatch.setattr(sys, "path", others)
    assert found({"mod": module}).find_spec("mod") is not None


HAS_OLD_GENERATION = sys.version_info < (3, 14) and "t" not in sys.abiflags
CYCLE = "import weakref\nclass C: pass\nc = C()\nc.itself = c\nfound = weakref.ref(c)\ndel c\n"


def run(name: str, path: str) -> ModuleType:
    """Run a module from a pack."""
    spec = found({name: path}).find_spec(name, [os.path.dirname(path)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_garbage_of_a_packed_body_is_left_to_the_next_full_collection(module: str) -> None:
    Path(module).write_text(CYCLE)
    left = run("mod", module).found
    assert gc.isenabled()
    if HAS_OLD_GENERATION:
        gc.collect(1)
        assert left() is not None
    gc.collect()
    assert left() is None


def test_what_the_program_has_frozen_stays_frozen(module: str) -> None:
    gc.freeze()
    try:
        run("mod", module)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_collector_that_is_switched_off_stays_so(module: str) -> None:
    gc.disable()
    try:
        run("mod", module)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.fixture
def collector() -> Iterator[tuple[int, int, int]]:
    """The collector's thresholds; the collector's state is restored afterwards."""
    thresholds = gc.get_threshold()
    yield thresholds
    gc.set_threshold(*thresholds)
    gc.enable()


def test_the_collector_is_as_it_was_after_a_body(module: str, collector: tuple[int, int, int]) -> None:
    Path(module).write_text("import gc\nBY = gc.get_threshold()[0]\n")
    assert collector[0] < run("mod", module).BY
    assert (gc.isenabled(), gc.get_threshold()) == (True, collector)


@pytest.mark.usefixtures("collector")
def test_a_body_that_switches_the_collector_off_is_obeyed(module: str) -> None:
    Path(module).write_text("import gc\ngc.disable()\n")
    run("mod", module)
    assert not gc.isenabled()


@pytest.mark.parametrize("threshold", [0, 5000])
@pytest.mark.usefixtures("collector")
def test_a_body_that_sets_the_threshold_is_obeyed(module: str, threshold: int) -> None:
    Path(module).write_text(f"import gc\ngc.set_threshold({threshold})\n")
    run("mod", module)
    assert gc.get_threshold()[0] == threshold


def test_a_body_that_fails_or_imports_leaves_the_collector_as_it_was(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: tuple[int, int, int]
) -> None:
    inner = tmp_path / "lib" / "inner_one.py"
    inner.write_text("1 / 0\n")
    Path(module).write_text("try:\n    import inner_one\nexcept ZeroDivisionError:\n    DONE = 1\n")
    monkeypatch.setattr(sys, "path", [str(inner.parent), *sys.path])
    monkeypatch.setattr(sys, "meta_path", [found({"inner_one": str(inner)}), *sys.meta_path])
    assert run("mod", module).DONE == 1
    assert gc.get_threshold() == collector


def test_threads_that_import_at_once_leave_the_collector_as_it_was(
    module: str, monkeypatch: pytest.MonkeyPatch, collector: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(builtins, "unsnarl_barrier", threading.Barrier(4, timeout=WATCHDOG_S), raising=False)
    Path(module).write_text("import builtins\nbuiltins.unsnarl_barrier.wait()\n")
    threads = [threading.Thread(target=run, args=("mod", module), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG_S)
    assert not any(thread.is_alive() for thread in threads)
    assert (gc.isenabled(), gc.get_threshold()) == (True, collector)


RUNS = "unsnarl_runs_of_the_body"


@pytest.fixture
def late_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An imported module whose body has not run yet; the body counts its runs."""
    path = tmp_path / "late_one.py"
    path.write_text(f"import builtins\nbuiltins.{RUNS} += 1\n1 / (builtins.{RUNS} != 13)\nA = 1\n")
    monkeypatch.setattr(builtins, RUNS, 0, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "meta_path", [found({"late_one": str(path)}, is_late=True), *sys.meta_path])
    yield importlib.import_module("late_one")
    sys.modules.pop("late_one", None)


def runs() -> int:
    """Return how often the body has run."""
    count: int = getattr(builtins, RUNS)
    return count


def test_importing_and_looking_at_it_does_not_run_the_body(late_module: ModuleType) -> None:
    assert importlib.import_module("late_one") is late_module
    assert isinstance(late_module, ModuleType)
    assert (late_module.__name__, late_module.__package__) == ("late_one", "")
    assert str(late_module.__file__).endswith("late_one.py")
    assert "late_one.py" in repr(late_module)
    assert not hasattr(late_module, "__path__")
    assert runs() == 0


def test_it_is_an_ordinary_module_once_touched(late_module: ModuleType) -> None:
    assert late_module.A == 1
    assert type(late_module) is ModuleType
    assert runs() == 1


@pytest.mark.parametrize(
    "touch", ["m.A", "m.__dict__", "m.__doc__", "dir(m)", "vars(m)", "setattr(m, 'A', 1)", "m.__class__"]
)
def test_any_touch_runs_the_body(late_module: ModuleType, touch: str) -> None:
    eval(touch, {"m": late_module})
    assert (runs(), type(late_module)) == (1, ModuleType)


def test_deleting_and_reloading(late_module: ModuleType) -> None:
    del late_module.A
    assert runs() == 1
    assert importlib.reload(late_module) is late_module
    assert (runs(), late_module.A) == (2, 1)


def test_reloading_what_was_not_loaded_runs_the_body_as_often_as_ever(late_module: ModuleType) -> None:
    importlib.reload(late_module)
    assert late_module.A == 1
    assert runs() in (1, 2)


def test_a_failing_body_is_tried_again_at_the_next_touch(late_module: ModuleType) -> None:
    setattr(builtins, RUNS, 12)
    with pytest.raises(ZeroDivisionError):
        assert late_module.A
    assert type(late_module) is not ModuleType
    assert late_module.A == 1
    assert runs() == 14


def test_the_body_runs_once_however_many_threads_touch(late_module: ModuleType) -> None:
    barrier = threading.Barrier(8, timeout=WATCHDOG_S)
    seen: list[int] = []

    def touch() -> None:
        barrier.wait()
        seen.append(late_module.A)

    threads = [threading.Thread(target=touch, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG_S)
    assert (seen, runs()) == ([1] * 8, 1)
