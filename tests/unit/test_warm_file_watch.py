"""Changes are noticed without events, by the stamps of files and directories and the names in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from unsnarl.warm import facts as facts_of
from unsnarl.warm.serving import file_watch


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> file_watch.Files:
    """Watch a directory with a module, and a caller's directory in which imports have examined and listed something."""
    monkeypatch.setattr(file_watch, "_mounts", lambda: [("/", "nfs")])
    here, place = tmp_path / "here", tmp_path / "place"
    for directory in (here, here / "below", here / "names", place, tmp_path / "empty", tmp_path / "all"):
        directory.mkdir()
    (place / "mod.py").write_text("VALUE = 1\n")
    for directory in (here, here / "below", here / "names"):
        os.utime(directory, (0, 0))  # only the time shows a change of these
    monkeypatch.chdir(here)
    facts = facts_of.Facts()
    facts.files = {str(place / "mod.py"): facts_of.stamp_of(str(place / "mod.py"))}
    facts.sought = ["mod", "optional", "libextra.so"]
    facts.enumerated = [str(tmp_path / "all")]
    facts.directories = [
        str(tmp_path / "empty"),
        str(tmp_path / "all"),
        "below",
        "below/settings.ini",
        str(tmp_path / "gone"),
    ]
    facts.listed = ["names"]
    facts.asks_cwd = True
    result = file_watch.Files(facts)
    assert result.fd == -1
    assert not result.is_in_doubt()
    assert result.reason() is None
    return result


def replace(directory: Path) -> None:
    directory.rename(directory.with_name("old"))
    directory.mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module": lambda base: (base / "place" / "mod.py").write_text("VALUE = 2, longer\n"),
    "a module that is gone": lambda base: (base / "place" / "mod.py").unlink(),
    "a module that was not found": lambda base: (base / "place" / "optional.py").touch(),
    "a library that was not found": lambda base: (base / "place" / "libextra.so").touch(),
    "a new module among enumerated ones": lambda base: (base / "all" / "other.py").touch(),
    "a new package among enumerated ones": lambda base: (base / "all" / "other").mkdir(),
    "a new package": lambda base: (base / "empty" / "mod").mkdir(),
    "an installation among enumerated ones": lambda base: (base / "all" / "mod-1.0.dist-info").mkdir(),
    "lines for each start": lambda base: (base / "empty" / "new.pth").touch(),
    "a directory that was not there": lambda base: (base / "gone").mkdir(),
    "a file that was looked at": lambda base: (base / "here" / "below" / "settings.ini").touch(),
    "a name in a directory that was listed": lambda base: (base / "here" / "names" / "notes.txt").touch(),
    "a directory that was looked at": lambda base: replace(base / "here" / "below"),
    "another directory of the name": lambda base: replace(base / "empty"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_noticed(files: file_watch.Files, tmp_path: Path, what: str) -> None:
    CHANGES[what](tmp_path)
    assert files.is_in_doubt()
    assert files.have_moved()
    assert files.reason() is not None


def test_what_hides_nothing_is_no_change(files: file_watch.Files, tmp_path: Path) -> None:
    (tmp_path / "place" / "__pycache__").mkdir()
    (tmp_path / "place" / "README.txt").touch()
    (tmp_path / "place" / "other.py").touch()
    (tmp_path / "place" / "other.so").touch()
    (tmp_path / "place" / "results_1").mkdir()
    (tmp_path / "place" / "optional").touch()
    (tmp_path / "empty" / "other-1.0.dist-info").mkdir()
    (tmp_path / "here" / "notes.txt").touch()
    (tmp_path / "here" / "module.py").touch()
    (tmp_path / "here" / "below" / "notes.txt").touch()
    os.utime(tmp_path / "empty")
    assert not files.is_in_doubt()
    (tmp_path / "place" / "optional.py").touch()
    assert files.is_in_doubt(), "and the next one is seen"
