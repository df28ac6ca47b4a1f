"""Which modules are left to the runs because of what the command may change before it imports them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from unsnarl.warm.importing.own_changes import Changes
from unsnarl.warm.learning import changes_before
from unsnarl.warm.learning.changes_before import Before, file_of
from unsnarl.warm.learning.environment_walk import Walks

if TYPE_CHECKING:
    from pathlib import Path


def _changes(text: str) -> Changes:
    source = f"import os\n{text}\n".encode()
    return Changes(source, ast.parse(source))


def _before(text: str) -> Before:
    before = Before(Walks(frozenset()))
    before.begin(_changes(text))
    return before


@pytest.mark.parametrize(
    ("text", "beginning", "is_blamed"),
    [
        ("os.environ['OMP_NUM_THREADS'] = '1'", "OMP_", True),
        ("os.environ['OMP_NUM_THREADS'] = '1'", "MKL_", False),
        ("os.environ['OPENSSL_CONF'] = ''", "OPENSSL_", True),
        ("load_dotenv()", "OMP_", True),
        ("load_dotenv()", "OPENSSL_", False),
        ("os.environ.get('OMP_NUM_THREADS')", "OMP_", False),
    ],
)
def test_a_library_whose_variables_the_own_file_sets(text: str, beginning: str, is_blamed: bool) -> None:
    before = _before(text)
    before.note_libraries([beginning], "math")
    assert [module for module, _ in before.of_libraries()] == (["math"] if is_blamed else [])


def test_a_library_that_was_loaded_before_the_commands_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_before, "_loaded", dict)
    before = Before(Walks(frozenset()))
    before.begin(None)
    before.note_libraries(["OMP_"], "early")
    before.begin(_changes("load_dotenv()"))
    before.note_libraries(["OMP_"], "late")
    assert before.of_libraries() == before.of_modules([], set()) == []


def test_what_another_module_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(changes_before, "_loaded", dict)
    file = f"{tmp_path}/sets.py"
    before = Before(walks := Walks(frozenset()))
    before.begin(Changes())
    assert not before.note_read("X", "reads")
    assert not walks.is_changed("X_", "walks")
    before.note_libraries(["X_"], "loads")
    for text, blamed in (("other = 1", set[str]()), ("os.environ['X'] = '1'", {"reads"})):
        with open(file, "w", encoding="utf-8") as out:
            out.write(f"import os\n{text}\n")
        assert {module for module, _ in before.of_modules([file], set())} == blamed
    assert before.of_modules([file], {"X"}) == []  # it belongs to the key, with what imports make of it
    for text in ("os.environ['X_1'] = '1'", "os.environ[name] = '1'"):
        with open(file, "w", encoding="utf-8") as out:
            out.write(f"import os\n{text}\n")
        assert {"walks", "loads"} <= {module for module, _ in before.of_modules([file], set())}
    assert before.looked_at == {file}


def test_the_file_of_a_module_that_is_not_imported() -> None:
    assert file_of("json.tool").endswith("/json/tool.py")
    assert file_of("there.is.none") == ""


def test_a_package_in_parts_whose_parent_is_not_loaded_has_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in_parts" / "deeper" / "deepest").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert file_of("in_parts.deeper.deepest") == ""


def test_a_finder_that_fails_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def find_spec(self, name: str, _path: object) -> None:
            raise RuntimeError(name)

    monkeypatch.setattr("sys.meta_path", [Failing()])
    assert file_of("json") == ""


def test_what_an_import_sets_itself_is_no_change_before_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(changes_before, "_loaded", dict)
    file = tmp_path / "sets.py"
    file.write_text("import os\nos.environ.setdefault('KMP_INIT', '1')\n")
    before = Before(Walks(frozenset()))
    before.begin(Changes())
    before.note_libraries(["KMP_"], "loads")
    assert before.of_modules([str(file)], {"KMP_INIT"}) == []
    assert [module for module, _ in before.of_modules([str(file)], set())] == ["loads"]


def test_what_runs_have_changed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_before, "_loaded", dict)
    before = Before(walks := Walks(frozenset()))
    before.of_runs = ["Q_X\t", ".\t", "Q_BODY\tbody"]
    before.begin(None)
    assert not before.note_read("Q_X", "early")
    assert not before.note_directory("early")
    assert before.late() == set()
    before.begin(Changes())
    assert before.note_read("Q_X", "late")
    assert before.note_directory("late")
    assert walks.is_changed("Q_", "walks")
    before.note_libraries(["Q_", "OTHER_"], "loads")
    assert [module for module, _ in before.of_libraries()] == ["loads"]
    assert before.late() == {"Q_X", ".", "Q_*", "OTHER_*"}


@pytest.mark.parametrize("is_imported", [True, False])
def test_what_the_body_of_a_module_has_changed_counts_if_that_is_left_to_the_runs(
    monkeypatch: pytest.MonkeyPatch, is_imported: bool
) -> None:
    monkeypatch.setattr(changes_before, "_loaded", dict)
    before = Before(Walks(frozenset()))
    before.of_runs = [f"Q_X\t{'json' if is_imported else 'not_there'}"]
    before.begin(Changes())
    assert not before.note_read("Q_X", "late")
    assert [module for module, _ in before.of_modules([], set())] == ([] if is_imported else ["late"])


@pytest.mark.parametrize("has_gevent", [True, False])
def test_an_installed_package_that_may_replace_parts_of_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_gevent: bool
) -> None:
    """As `celery -P gevent` does, where gevent is installed."""
    monkeypatch.setattr(changes_before, "_loaded", dict)

    def found(name: str) -> str:
        return "there" if has_gevent and name == "gevent" else ""

    monkeypatch.setattr(changes_before, "file_of", found)
    (package := tmp_path / "site-packages").mkdir()
    (file := package / "cli.py").write_text("def patch():\n    import gevent.monkey\n    gevent.monkey.patch_all()\n")
    (package / "words.py").write_text('"""With gevent, call patch_all() first."""\n')
    (package / "tracing.py").write_text("from .patches import patch_all\n\npatch_all()\n")  # another package's own
    before = Before(Walks(frozenset()))
    before.begin(Changes())
    assert before.of_modules([str(package / name) for name in ("words.py", "tracing.py")], set()) == []
    why = [("", "it replaces parts of the standard library, by patch_all()")]
    assert before.of_modules([str(file)], set()) == (why if has_gevent else [])
