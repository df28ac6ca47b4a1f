"""Root's directory is given to another user with the script in it, and only if that user can enter it."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unsnarl.cli.failure import CommandError
from unsnarl.cli.tracing import attach as trace_attach
from unsnarl.cli.tracing.arguments import TraceRequest
from unsnarl.trace.running import attach, handover

if TYPE_CHECKING:
    from collections.abc import Sequence

NOBODY = handover.Owner(65534, 65534, ())
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root records the processes of others")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _path: str) -> None:
        raise PermissionError

    monkeypatch.setattr(sys, "remote_exec", refuse, raising=False)


def test_the_script_is_there_before_the_directory_is_handed_over(
    refused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every user can read the script, under any umask."""
    found: list[int] = []

    def give(directory: Path, owner: handover.Owner) -> None:
        assert owner == NOBODY
        found.append(stat.S_IMODE((directory / "begin.py").lstat().st_mode))

    monkeypatch.setattr(handover, "give", give)
    umask = os.umask(0o077)
    try:
        with pytest.raises(attach.NotAttachable, match="does not let"):
            attach.record(os.getppid(), tmp_path, 1, 8, NOBODY)
    finally:
        os.umask(umask)
    assert found == [0o644]


def test_a_link_in_place_of_the_script_is_not_followed(refused: None, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / "begin.py").symlink_to(precious)
    with pytest.raises(FileExistsError):
        attach.record(os.getppid(), directory, 1, 8)
    assert precious.read_text() == "as it was"


def test_a_failure_is_read_as_a_strangers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    monkeypatch.setattr(sys, "remote_exec", lambda *_: (tmp_path / "failure").symlink_to(secret), raising=False)
    with pytest.raises(attach.NotAttachable) as refusal:
        attach.record(os.getppid(), tmp_path, 1, 8)
    assert "a secret" not in refusal.value.reason


def test_the_owner_of_a_process_is_known() -> None:
    owner = handover.owner_of(os.getpid())
    assert owner is not None
    assert (owner.uid, owner.gid, set(owner.groups)) == (os.geteuid(), os.getegid(), set(os.getgroups()))
    assert handover.owner_of(4194304) is None
    assert handover.other_owner_of(os.getpid()) is None


@needs_root
def test_a_directory_behind_a_closed_one_is_not_handed_over() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        place = Path(folder, "closed", "recording")
        place.mkdir(parents=True)
        os.chmod(folder, 0o755)
        os.chmod(place.parent, 0o700)
        with pytest.raises(handover.NotReachable) as refusal:
            handover.give(place, NOBODY)
        assert str(refusal.value) == str(place.parent)
        assert place.stat().st_uid == 0
        os.chmod(place.parent, 0o711)
        assert handover.first_closed(NOBODY, [Path(folder), place.parent], os.X_OK) is None


@needs_root
def test_a_package_that_the_user_cannot_read_is_said_in_one_line(
    refused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def closed(_owner: handover.Owner, paths: Sequence[Path], right: int) -> Path | None:
        return paths[0] if right == os.R_OK else None

    monkeypatch.setattr(handover, "first_closed", closed)
    with pytest.raises(attach.NotAttachable) as refusal:
        attach.record(os.getppid(), tmp_path, 1, 8, NOBODY)
    assert "unsnarl/__init__.py" in refusal.value.reason
    assert "\n" not in refusal.value.reason


def test_the_directory_of_another_user_is_among_the_temporary_ones(
    refused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[Path] = []
    monkeypatch.setattr(handover, "other_owner_of", lambda _: NOBODY)
    monkeypatch.setattr(handover, "give", lambda directory, _: given.append(directory))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CommandError, match="does not let"):
        trace_attach.attach(TraceRequest(attach=os.getppid(), output=Path("/dev/shm/trace.html"), size_mb=1))
    assert [directory.parent for directory in given] == [tmp_path.resolve()]
    assert list(tmp_path.iterdir()) == []


def test_where_no_directory_can_be_made_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(CommandError) as refusal:
        trace_attach.attach(TraceRequest(attach=os.getppid(), output=tmp_path / "trace.html", size_mb=1))
    assert "No space left on device" in refusal.value.what
    assert refusal.value.status == 1
