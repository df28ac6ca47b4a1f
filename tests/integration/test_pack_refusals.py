"""What `unsnarl pack` refuses: one line, a hint, a status, and nothing of the user's lost."""

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from unsnarl.pack import recorder

if TYPE_CHECKING:
    import subprocess

    from tests.integration.conftest import Rig


def packed(rig: "Rig", *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    """Run `unsnarl pack`."""
    return rig.plain(UNSNARL, "pack", *words, **options)


def refused(rig: "Rig", *words: str, **options: object) -> bytes:
    """Run `unsnarl pack`, which has to fail as a command does; returns what it has said."""
    made = packed(rig, *words, **options)
    assert made.returncode in (1, 2), made
    assert made.stderr.count(b"error: ") == 1, made.stderr
    assert made.stderr.count(b"hint: ") == 1, made.stderr
    assert b"Traceback" not in made.stderr
    return made.stderr


def test_the_program_itself_is_not_written_over(rig: "Rig") -> None:
    script = rig.script("app", "print(1)\n")
    text = Path(script).read_bytes()
    here = rig.directory / "bin"
    for words in (["-o", "app.pack"], ["-o", "app"], ["-o", "other.pack", "--launcher", "app"]):
        refused(rig, script, *words, cwd=here)
        assert Path(script).read_bytes() == text
    (here / "link").symlink_to("app")
    refused(rig, script, "-o", "link.pack", cwd=here)
    assert sorted(path.name for path in here.iterdir()) == ["app", "link"]


def test_a_pack_is_not_its_own_launcher(rig: "Rig") -> None:
    script = rig.script("app", "print(1)\n")
    assert b"both the pack and its launcher" in refused(rig, script, "-o", "out")
    assert b"both the pack and its launcher" in refused(rig, script, "-o", "out.pack", "--launcher", "./out.pack")
    assert not list((rig.directory / "work").iterdir())


def test_only_packs_and_launchers_are_written_over(rig: "Rig") -> None:
    script, work = rig.script("app", "print(1)\n"), rig.directory / "work"
    (work / "mine").write_text("of the user's")
    assert b"mine exists and is no launcher" in refused(rig, script, "-o", "mine.pack")
    assert b"mine exists and is no pack" in refused(rig, script, "-o", "mine", "--launcher", "x")
    (work / "folder").mkdir()
    refused(rig, script, "-o", "folder.pack")
    assert (work / "mine").read_text() == "of the user's"
    for _ in range(2):
        made = packed(rig, script, "-o", "again.pack")
        assert made.returncode == 0, made.stderr
    assert rig.plain(str(work / "again")).stdout == b"1\n"


@pytest.fixture
def app(rig: "Rig") -> tuple[str, Path]:
    """The launcher of a packed program, and its pack."""
    script, pack = rig.script("app", "import json\nprint(type(json.__loader__).__name__)\n"), rig.directory / "app.pack"
    made = packed(rig, script, "-o", str(pack))
    assert made.returncode == 0, made.stderr
    return str(rig.directory / "app"), pack


def loads_plainly(rig: "Rig", launcher: str, why: bytes) -> None:
    """Have the program start without its pack, and with one line of warning."""
    run = rig.plain(launcher)
    assert (run.returncode, run.stdout) == (0, b"SourceFileLoader\n")
    assert run.stderr.startswith(b"warning: the pack is not used")
    assert why in run.stderr
    assert run.stderr.count(b"\n") == 1


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_pack_that_others_can_write_is_left_aside(rig: "Rig", app: tuple[str, Path], mode: int) -> None:
    launcher, pack = app
    assert rig.plain(launcher).stdout == b"PackLoader\n"
    pack.chmod(mode)
    loads_plainly(rig, launcher, b"others than its owner can write it")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_pack_of_another_user_is_left_aside(rig: "Rig", app: tuple[str, Path]) -> None:
    launcher, pack = app
    os.chown(pack, 54321, -1)
    loads_plainly(rig, launcher, b"it belongs to another user")


def test_a_pipe_in_a_pack_s_place_does_not_hang_the_start(rig: "Rig", app: tuple[str, Path]) -> None:
    launcher, pack = app
    pack.unlink()
    os.mkfifo(pack, 0o600)
    loads_plainly(rig, launcher, b"it is no regular file")


def test_only_its_owner_can_write_a_pack_and_not_in_place(rig: "Rig") -> None:
    script, work = rig.script("app", "print(1)\n"), rig.directory / "work"
    made = packed(rig, script, "-o", "app.pack", preexec_fn=lambda: os.umask(0o002))
    assert made.returncode == 0, made.stderr
    assert [(work / name).stat().st_mode & 0o7777 for name in ("app.pack", "app")] == [0o444, 0o755]


def test_what_is_written_goes_through_no_link_that_lay_in_wait(tmp_path: Path) -> None:
    pack, victim = tmp_path / "x.pack", tmp_path / "victim"
    victim.write_text("of another")
    (tmp_path / f"x.pack.{os.getpid()}").symlink_to(victim)
    recorder.store(b"data", str(pack))
    assert (victim.read_text(), pack.read_bytes()) == ("of another", b"data")
    assert not pack.is_symlink()


def test_a_full_disk_leaves_nothing_behind(rig: "Rig") -> None:
    script, work = rig.script("app", "print(1)\n"), rig.directory / "work"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    assert b"app.pack: File too large" in refused(rig, script, "-o", "app.pack", preexec_fn=limited)
    assert list(work.iterdir()) == []
