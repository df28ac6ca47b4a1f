"""The list of what runs have changed, and how a run fills it."""

from __future__ import annotations

import copy
import os
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from unsnarl.warm import changed
from unsnarl.warm.importing import library
from unsnarl.warm.worker.run_changes import RunChanges

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stem(tmp_path: Path) -> str:
    return f"{tmp_path}/id"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test an environment of its own."""
    monkeypatch.setenv("Q_OLD", "old")
    environ: Any = os.environ
    environb: Any = os.environb
    data = environ._data
    before = dict(data)
    yield
    environ._data = environb._data = data
    data.clear()
    data.update(before)


def _run(stem: str, *late: str) -> RunChanges:
    known = frozenset(changed.read(stem))
    imported = SimpleNamespace(
        late=frozenset(late), changed=known, functions=library.functions(), is_observed=changed.is_there(stem)
    )
    inherited: Any = SimpleNamespace(record=stem, imported=imported, is_surveyed=True)
    run = RunChanges(inherited)
    run.begin()
    return run


def test_what_a_run_changes_is_reported_at_its_end(stem: str) -> None:
    run = _run(stem)
    os.environ["Q_NEW"] = "1"
    os.environ["Q_OLD"] = "old"  # as before
    os.environb[b"Q_BYTES"] = b"1"
    assert os.environ["Q_BYTES"] == "1"
    assert changed.read(stem) == []
    run.report()
    assert {line.partition("\t")[0] for line in changed.read(stem)} == {"Q_BYTES", "Q_NEW"}


def test_what_was_read_too_early_is_reported_at_once(stem: str) -> None:
    _run(stem, "Q_LATE", "Q_B*")
    os.environ["Q_OTHER"] = "1"
    assert changed.size(stem) == 0
    os.environ["Q_LATE"] = "1"
    assert changed.news(stem, 0, ["Q_LATE"]) == "Q_LATE"
    del os.environ["Q_LATE"]
    os.environ["Q_BEGIN"] = "1"
    assert changed.news(stem, 0, ["Q_B*"]) == "Q_BEGIN"


def test_a_run_that_changes_nothing_is_reported_too(stem: str) -> None:
    _run(stem).report()
    assert (changed.is_there(stem), changed.size(stem)) == (True, 0)


def test_a_change_that_is_undone_counts(stem: str) -> None:
    run = _run(stem)
    del os.environ["Q_OLD"]
    os.environ["Q_OLD"] = "old"
    run.report()
    assert changed.names(changed.read(stem)) == {"Q_OLD"}


def test_each_way_to_change_the_environment(stem: str) -> None:
    run = _run(stem)
    os.environ.setdefault("Q_1", "")
    os.environ.update(Q_2="")
    os.environ |= {"Q_3": ""}
    os.environ.pop("Q_OLD")
    environ: Any = os.environ
    environ._data.update({b"Q_4": b""})
    run.report()
    assert changed.names(changed.read(stem)) == {"Q_1", "Q_2", "Q_3", "Q_4", "Q_OLD"}
    environ._data.clear()
    run.report()
    assert "PATH" in changed.names(changed.read(stem))
    assert not os.environ


def test_the_directory_at_the_end(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run = _run(stem)
    monkeypatch.chdir("/usr")
    run.report()
    assert changed.news(stem, 0, [changed.DIRECTORY]) == changed.DIRECTORY


def test_a_function_of_the_library_that_is_replaced(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(stem)
    monkeypatch.setattr("time.sleep", print)
    monkeypatch.setattr("json.loads", print)
    run.report()
    assert changed.read(stem) == ["=json.loads\t", "=time.sleep\t"]
    assert changed.in_words(changed.news(stem, 0, ["=time.sleep"])) == "time.sleep"


def test_which_modules_keep_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, other = ModuleType("keeper"), ModuleType("other")
    vars(keeper)["pause"] = time.sleep
    monkeypatch.setitem(sys.modules, "keeper", keeper)
    monkeypatch.setitem(sys.modules, "other", other)
    assert library.kept(["other", "keeper", "missing"]) == {"time.sleep": {"keeper"}}
    assert "time.sleep" not in library.kept(["time"])


def test_a_forked_process_reports_nothing(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(stem, "Q_LATE")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    os.environ["Q_LATE"] = "1"
    run.report()
    assert changed.size(stem) == 0


def test_a_copy_of_the_environment_is_a_plain_dictionary(stem: str) -> None:
    _run(stem)
    environ: Any = copy.deepcopy(os.environ)
    assert type(environ._data) is dict
    assert environ["Q_OLD"] == "old"
    assert type(os.environ.copy()) is dict


def test_the_body_of_a_module_is_told_from_the_program(stem: str) -> None:
    run = _run(stem)
    body = compile("import os\nos.environ['Q_BODY'] = '1'\n", "body.py", "exec")
    exec(body, {"__name__": "body"})
    exec(body, {"__name__": "body"})
    run.report()
    assert changed.read(stem) == ["Q_BODY\tbody"]
    assert changed.names(changed.read(stem), {"body"}) == set()
    assert changed.names(changed.read(stem), {"other"}) == {"Q_BODY"}


def test_only_new_lines_are_added_and_too_many_stand_for_all(stem: str) -> None:
    changed.append(stem, ["Q_X\t"])
    size = changed.size(stem)
    changed.append(stem, ["Q_X\t"])
    assert changed.size(stem) == size
    assert changed.news(stem, size, ["Q_X"]) == ""
    Path(changed.path_of(stem)).write_text("Q_X\t\n" * (changed.MOST_BYTES // 5 + 1))
    changed.append(stem, ["Q_Y\t"])
    changed.append(stem, ["Q_Z\t"])
    assert changed.read(stem)[-2:] == ["Q_X\t", f"{changed.ANY}\t"]
    changed.append(stem, [f"{changed.DIRECTORY}\t", "=time.sleep\t", "Q_Z\t"])
    assert changed.read(stem)[-2:] == [f"{changed.DIRECTORY}\t", "=time.sleep\t"]


def test_a_list_that_was_removed_meanwhile_is_read_from_its_beginning(stem: str) -> None:
    changed.append(stem, ["Q_FIRST\t", "Q_SECOND\t"])
    known = changed.size(stem)
    Path(changed.path_of(stem)).unlink()
    assert changed.news(stem, known, ["Q_X"]) == ""
    changed.append(stem, ["Q_X\t"])
    assert changed.news(stem, known, ["Q_X"]) == "Q_X"


def test_a_variable_is_set_whatever_becomes_of_the_note(stem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("a hook of the program's")

    monkeypatch.setattr(changed, "append", refuse)
    _run(stem, "Q_NEW")
    os.environ["Q_NEW"] = "1"
    exec("os.environ['Q_OTHER'] = '1'", {"__name__": None, "os": os})
    assert (os.environ["Q_NEW"], os.environ["Q_OTHER"]) == ("1", "1")


@pytest.mark.parametrize(
    ("name", "late", "is_concerned"),
    [
        ("Q_X", {"Q_X"}, True),
        ("Q_X", {"Q_*"}, True),
        ("Q_X", {"Q_Y", "."}, False),
        ("*", {"Q_X"}, True),
        ("*", {"."}, False),
        ("*", {""}, True),
        (".", {"."}, True),
        (".", {"Q_X"}, False),
        ("=time.sleep", {"=time.sleep"}, True),
        ("=time.sleep", {"=time.time"}, False),
        ("=time.sleep", {"Q_X"}, False),
        ("*", {"=time.sleep"}, False),
    ],
)
def test_what_a_name_concerns(name: str, late: set[str], is_concerned: bool) -> None:
    assert changed.concerns(name, frozenset(late)) == is_concerned


def test_a_name_that_would_be_two_lines_stands_for_all(stem: str) -> None:
    run = _run(stem)
    os.environ["Q\nX"] = "1"
    run.report()
    assert changed.names(changed.read(stem)) == {changed.ANY}


def test_the_size_tells_what_is_known_and_nothing_is_there_at_first(stem: str) -> None:
    assert (changed.size(stem), changed.read(stem), changed.news(stem, 0, ["Q_X"])) == (0, [], "")
    changed.append(stem, ["Q_X\t"])
    assert changed.news(stem, 0, []) == ""
    assert Path(changed.path_of(stem)).stat().st_mode & 0o777 == 0o600
