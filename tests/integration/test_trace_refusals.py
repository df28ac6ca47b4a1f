"""A program or file that cannot be traced or read: an error line, a hint, a status, and no side effect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import UNSNARL
from tests.integration.trace_programs import needs_hooks, trace_words
from unsnarl.trace import recordings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Outcome, Programs


def assert_refused(outcome: Outcome, status: int, *words: str) -> None:
    lines = outcome.complaint.splitlines()
    assert outcome.status == status, outcome.complaint
    assert lines[-2].startswith("error: "), outcome.complaint
    assert lines[-1].startswith("hint: ")
    assert "Traceback" not in outcome.complaint
    for word in words:
        assert word in outcome.complaint


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "no program given"),
        (["absent.py"], 2, "absent.py"),
        (["--", "no-such-command"], 127, "no-such-command"),
        (["-m", "no_such_module"], 1, "no_such_module"),
        (["--size", "0", "app.py"], 2, "--size"),
        (["--size", "many", "app.py"], 2, "many"),
        (["--seconds", "-1", "app.py"], 2, "--seconds"),
        (["--attach", "me"], 2, "process id"),
        (["--attach", "0"], 2, "process id"),
        (["--stats", "app.py"], 2, "--stats"),
        (["--keep=yes", "app.py"], 2, "--keep"),
        (["--output"], 2, "--output"),
        (["--output", "trace.json", "app.py"], 2, "trace.json"),
        (["--output", "absent/trace.html", "app.py"], 1, "no such directory"),
        (["--output", ".", "app.py"], 1, "directory"),
        (["--output", "x" * 300, "app.py"], 1, "File name too long"),
        (["--output", "a.html", "--data", "loop", "app.py"], 1, "Too many levels of symbolic links"),
        (["--data", "trace.json", "app.py"], 2, "--data cannot be"),
        (["--nonsense", "app.py"], 2, "--nonsense"),
        (["--read", "absent"], 1, "'absent': No such file or directory"),
        (["--read", "app.py"], 1, "no trace of unsnarl"),
        (["--read", "."], 1, "no recording"),
        (["--read", "empty.trace"], 1, "ends within"),
        (["--compare", "app.py"], 2, "two recordings"),
        (["--compare", "absent", "app.py"], 1, "'absent': No such file or directory"),
        (["--compare", "app.py", "empty.trace"], 1, "no trace of unsnarl"),
        (["--compare", "app.py", "app.py"], 2, "nothing can differ"),
        (["--compare", "app.py", "empty.trace", "--keep"], 2, "--keep"),
        (["--output", "absent/c.html", "--compare", "app.py", "empty.trace"], 1, "no such directory"),
    ],
)
def test_what_the_user_can_get_wrong(programs: Programs, words: list[str], status: int, said: str) -> None:
    programs.write("app.py", "open('has_run', 'w')")
    programs.write("empty.trace", "")
    (programs.directory / "loop").symlink_to("loop")
    assert_refused(programs.unsnarl("trace", *words), status, said)
    assert not (programs.directory / "has_run").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory(programs: Programs) -> None:
    programs.write("app.py", "print(1)")
    os.chmod(programs.directory, 0o555)
    try:
        assert_refused(programs.unsnarl("trace", "app.py"), 1, "permission denied")
    finally:
        os.chmod(programs.directory, 0o755)


def test_a_directory_that_may_not_be_read(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(recordings.UnreadableTrace) as refusal:
        recordings.read(programs.directory)
    assert refusal.value.reason == f"cannot read {str(programs.directory)!r}: Permission denied"


def test_a_directory_that_may_not_be_searched(programs: Programs) -> None:
    if os.getuid() == 0:
        pytest.skip("root may search anywhere")
    programs.write("app.py", "print(1)")
    (programs.directory / "closed").mkdir(mode=0)
    assert_refused(programs.unsnarl("trace", "--output", "closed/trace.html", "app.py"), 1, "Permission denied")


def test_a_name_as_long_as_they_come(programs: Programs) -> None:
    needs_hooks()
    name = "x" * 250 + ".html"
    outcome = programs.unsnarl("trace", "--output", name, "-c", "pass")
    assert outcome.status == 0, outcome.complaint
    assert {entry.name for entry in programs.directory.iterdir()} == {name, name.replace("html", "json")}


def small_disk(place: Path) -> bool:
    """Mount a file system of half a megabyte in a new mount namespace; tell whether that is possible."""
    probe = [
        "unshare",
        "--mount",
        "--user",
        "--map-root-user",
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=512k",
        "tmpfs",
        str(place),
    ]
    try:
        return subprocess.run(probe, check=False, capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        return False


def on_small_disk(programs: Programs, place: Path, size: str, *options: str) -> Outcome:
    """Trace the program in the directory above, with a small disk for the reports."""
    trace = f"exec {UNSNARL} trace {' '.join(options)} ../app.py"
    script = f"mount -t tmpfs -o size={size} tmpfs {place} && cd {place} && {trace}"
    return programs.execute(["unshare", "--mount", "--user", "--map-root-user", "sh", "-c", script])


def test_a_full_disk(programs: Programs) -> None:
    place = programs.directory / "full"
    place.mkdir()
    if not small_disk(place):
        pytest.skip("no mount namespace can be had here")
    programs.write("app.py", "print('has run')")
    outcome = on_small_disk(programs, place, "512k")
    assert_refused(outcome, 1, "no room")
    assert outcome.stdout == b""


FILLER = """\
import os
with open("filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(65536))
    except OSError:
        print("done", flush=True)
        os._exit(0)  # the recording keeps its space
"""


def test_a_disk_that_fills_up_meanwhile_does_no_harm(programs: Programs) -> None:
    needs_hooks()
    place = programs.directory / "small"
    place.mkdir()
    if not small_disk(place):
        pytest.skip("no mount namespace can be had here")
    programs.write("app.py", FILLER)
    outcome = on_small_disk(programs, place, "24m", "--size", "1")
    assert outcome.status == 0, outcome.complaint
    assert outcome.stdout == b"done\n"
    assert "cannot write" in outcome.complaint
    assert "Traceback" not in outcome.complaint
    # The recordings remain for a report on another disk.
    assert f"unsnarl: recordings: {place}/.unsnarl-trace-" in outcome.complaint
    assert "unsnarl trace --read" in outcome.complaint


def test_a_truncated_recording_is_read_as_far_as_it_goes(programs: Programs) -> None:
    needs_hooks()
    programs.write("app.py", "import threading\nt = threading.Thread(target=print); t.start(); t.join()\n")
    assert trace_words(programs, "--keep", "app.py").outcome.status == 0
    [directory] = [entry for entry in programs.directory.iterdir() if entry.name.startswith(".unsnarl-trace-")]
    [recording] = directory.glob("*.trace")
    whole = recording.read_bytes()
    recording.write_bytes(whole[:-1000])
    assert programs.unsnarl("trace", "--read", recording).status == 0
    recording.write_bytes(whole[:5000])
    assert_refused(programs.unsnarl("trace", "--read", recording), 1, "ends within its tables")
    recording.write_bytes(b"PK\x03\x04" + whole[4:])
    assert_refused(programs.unsnarl("trace", "--read", recording), 1, "no trace of unsnarl")


def test_two_recordings_are_compared_on_stdout(programs: Programs) -> None:
    needs_hooks()
    programs.write("app.py", "import threading\nt = threading.Thread(target=print); t.start(); t.join()\n")
    for _ in range(2):
        assert trace_words(programs, "--keep", "app.py").outcome.status == 0
    found = [entry for entry in programs.directory.iterdir() if entry.name.startswith(".unsnarl-trace-")]
    outcome = programs.unsnarl("trace", "--compare", *found, "--data", "c.json")
    assert outcome.status == 0, outcome.complaint
    lines = outcome.stdout.decode().splitlines()
    assert [line[:3] for line in lines[:2]] == ["A: ", "B: "]
    assert any(line.startswith("worse in B:") for line in lines)
    assert (programs.directory / "comparison.html").stat().st_size > 1000
    assert json.loads((programs.directory / "c.json").read_text())["shared"]


@pytest.mark.needs_gil
def test_attaching_says_why_it_cannot(programs: Programs) -> None:
    outcome = programs.unsnarl("trace", "--attach", "4194303")
    said = "no process" if sys.version_info >= (3, 14) else "needs CPython 3.14 or later"
    assert_refused(outcome, 1, said)


def test_an_interpreter_without_site_is_refused(programs: Programs) -> None:
    assert_refused(programs.unsnarl("trace", "-S", "-c", ""), 2, "-S")
