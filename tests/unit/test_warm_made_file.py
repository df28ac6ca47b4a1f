"""What a learning run notes of what imports make, and what whoever ends it early does about that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unsnarl.warm.made_file import MadeFile, put_in_order

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_made_is_put_in_order(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    notes = MadeFile(str(tmp_path / "notes"))
    for name, mode in (("kept", 0o777), ("private", 0o700), ("not made", 0o777)):
        notes.note_directory(str(there / name), mode)
    for name in ("one\nfile", "full", "link", "gone"):
        notes.note_temporary(str(there / name))
    for name in ("kept", "private", "full"):
        (there / name).mkdir(mode=0o701)
    for name in ("one\nfile", "full/file", "kept/file"):
        (there / name).touch()
    (there / "link").symlink_to(there / "kept")
    put_in_order(str(tmp_path / "notes"), 0o027)
    left = {path.name: path.stat().st_mode & 0o777 for path in there.iterdir()}
    assert left == {"kept": 0o750, "private": 0o700}
    assert os.listdir(there / "kept") == ["file"]


def test_a_run_that_has_noted_nothing_leaves_nothing(tmp_path: Path) -> None:
    put_in_order(str(tmp_path / "notes"), 0o022)
    assert list(tmp_path.iterdir()) == []


def test_a_cut_entry_is_left_out(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.touch()
    (tmp_path / "notes").write_bytes(b"- " + os.fsencode(kept))
    put_in_order(str(tmp_path / "notes"), 0o022)
    assert kept.exists()
