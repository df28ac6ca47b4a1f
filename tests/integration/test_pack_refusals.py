"""Refusals of `unsnarl pack`: one line, a hint, a status, and no file of the user lost."""

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from unsnarl.pack import container, recorder

if TYPE_CHECKING:
    import subprocess

    from tests.integration.conftest import Rig


def packed(rig: "Rig", *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    """Run `unsnarl pack`."""
    return rig.plain(UNSNARL, "pack", *words, **options)


def refused(rig: "Rig", *words: str, **options: object) -> bytes:
    """Run `unsnarl pack`, which has to fail with the status of a failed command; returns its message."""
    made = packed(rig, *words, **options)
    assert made.returncode in (1, 2), made
    assert made.stderr.count(b"error: ") == 1, made.stderr
    assert made.stderr.count(b"hint: ") == 1, made.stderr
    assert b"Traceback" not in made.stderr
    return made.stderr


def test_missing_file_is_said_to_be_missing(rig: "Rig") -> None:
    made = packed(rig, "absent.py", "-o", "absent.pack", cwd=rig.directory)
    assert made.returncode == 127
    assert b"there is no file 'absent.py' in" in made.stderr


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
    """Check that the program starts without its pack, and with one line of warning."""
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


FAILING = {
    "an exception": ("1 / 0\n", b"ZeroDivisionError"),
    "an import": ("import unsnarl_has_no_such_module\n", b"ModuleNotFoundError"),
    "a syntax error": ("1 +\n", b"SyntaxError"),
}


@pytest.mark.parametrize("how", FAILING)
@pytest.mark.parametrize("lazily", [[], ["--lazy"]])
def test_a_recording_run_that_fails_makes_no_pack(rig: "Rig", how: str, lazily: list[str]) -> None:
    text, said = FAILING[how]
    script = rig.script("app", text)
    complaint = refused_last(rig, script, "-o", "app.pack", "--with", "", *lazily)
    assert b"failed (" + said + b")" in complaint
    assert list((rig.directory / "work").iterdir()) == []


def refused_last(rig: "Rig", *words: str) -> bytes:
    """Run `unsnarl pack`, which has to fail; returns its message, after the output of the program."""
    made = packed(rig, *words)
    assert made.returncode == 1
    return made.stderr[made.stderr.rindex(b"error: ") :]


def test_a_module_that_is_not_there_makes_no_pack(rig: "Rig") -> None:
    assert b"no such module" in refused_last(rig, "-m", "unsnarl_has_no_such_module", "-o", "m.pack")
    assert list((rig.directory / "work").iterdir()) == []


TAKEN = """
import sys, colorsys
def take(main=sys.modules["__main__"].__dict__):
    main.clear()
    main |= dict.fromkeys(["open", "str", "list", "sys", "_others", "_note", "_spy", "_Asked", "__spec__"])
take()
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit\n"])
def test_what_a_program_makes_of_its_names_is_no_matter_to_its_recording(rig: "Rig", end: str) -> None:
    (rig.directory / "work" / "taker.py").write_text(TAKEN + end)
    script = rig.script("app", TAKEN + end)
    for name, words in (("m", ["-m", "taker"]), ("s", [script])):
        made = packed(rig, *words, "-o", f"{name}.pack")
        assert (made.returncode, made.stderr) == (0, b"")
        entries, *_ = container.read(memoryview((rig.directory / "work" / f"{name}.pack").read_bytes()))
        assert "colorsys" in entries


FORKS = """
import os, sys, colorsys
until, end = os.pipe()
if os.fork() == 0:
    os.close(end)
    del sys.modules["colorsys"]
    os.read(until, 1)  # until the other has ended
sys.exit()
"""


def test_a_forked_child_that_lives_longer_is_not_recorded(rig: "Rig") -> None:
    made = packed(rig, rig.script("app", FORKS), "-o", "app.pack")
    assert (made.returncode, made.stderr) == (0, b"")
    entries, *_ = container.read(memoryview((rig.directory / "work" / "app.pack").read_bytes()))
    assert "colorsys" in entries


def test_a_recording_run_that_returns_something_is_mentioned(rig: "Rig") -> None:
    script = rig.script("app", "import sys\nsys.exit(sys.argv[1:] == ['--odd'])\n")
    made = packed(rig, script, "-o", "app.pack", "--with", "--even", "--with", "--odd")
    assert made.returncode == 0
    assert made.stderr.count(b"warning: ") == 1
    assert b"app --odd` ended with status 1" in made.stderr


def test_arguments_that_cannot_be_split_are_refused(rig: "Rig") -> None:
    script = rig.script("app", "print(1)\n")
    assert b"No closing quotation" in refused(rig, script, "-o", "app.pack", "--with", 'a "b')


def test_paths_of_any_bytes_can_be_packed(rig: "Rig") -> None:
    odd = os.fsdecode(b"\xff a\tb\nc")
    here = rig.directory / odd
    here.mkdir()
    (here / "beside.py").write_text("VALUE = 1\n")
    script = here / "app"
    script.write_text(f"#!{sys.executable}\nimport beside\nprint(type(beside.__loader__).__name__, beside.VALUE)\n")
    made = packed(rig, str(script), "-o", str(here / "made.pack"))
    assert made.returncode == 0, made.stderr
    run = rig.plain(str(here / "made"))
    assert (run.returncode, run.stdout, run.stderr) == (0, b"PackLoader 1\n", b"")


def test_a_command_next_to_unsnarl_need_not_be_on_the_path(rig: "Rig") -> None:
    name = next(name for name in ("pytest", "pip") if os.access(Path(UNSNARL).with_name(name), os.X_OK))
    env = rig.env | {"PATH": "/usr/bin:/bin"}
    made = packed(rig, name, "-o", "tool.pack", env=env)
    assert made.returncode == 0, made.stderr


def test_a_command_that_runs_with_another_level_of_optimisation_is_packed_for_it(rig: "Rig") -> None:
    here = rig.directory / "bin"
    (here / "beside.py").write_text("def f():\n    assert False\n    return 1\n")
    script = here / "app"
    script.write_text(
        f"#!{sys.executable} -O\nimport beside\n"
        "print(beside.f(), type(beside.__loader__).__name__, beside.__spec__.cached.rpartition('.opt')[2])\n"
    )
    made = packed(rig, str(script), "-o", "app.pack")
    assert made.returncode == 0, made.stderr
    run = rig.plain(str(rig.directory / "work" / "app"))
    assert (run.stdout, run.stderr) == (b"1 PackLoader -1.pyc\n", b"")


def test_a_module_that_the_command_forbids_cuts_no_recording_short(rig: "Rig") -> None:
    script = rig.script("app", "import sys\nsys.modules['forbidden'] = None\nimport csv, json\n")
    made = packed(rig, script, "-o", "app.pack")
    assert (made.returncode, made.stderr) == (0, b"")
    assert b"csv.py" in (rig.directory / "work" / "app.pack").read_bytes()


def test_an_interpreter_that_is_gone_is_named(rig: "Rig") -> None:
    script = rig.script("app", "")
    Path(script).write_text("#!/no/such/python\n")
    assert b"/no/such/python" in refused(rig, script, "-o", "app.pack")
