"""`unsnarl warm why` answers for the call that is named, in the circumstances in which it is asked."""

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL

if TYPE_CHECKING:
    from tests.integration.conftest import Rig


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([shutil.which("env") or "", "true"], b"no Python script"),
        ([sys.executable, "-c", "print()"], b"only a script or `-m MODULE`"),
        ([sys.executable], b"only a script or `-m MODULE`"),
    ],
)
def test_what_is_no_python_command_says_so(rig: "Rig", words: list[str], reason: bytes) -> None:
    outcome = rig.verb("why", "--", *words)
    assert outcome.returncode == 0
    assert b" runs plainly:" in outcome.stdout
    assert reason in outcome.stdout


def test_a_setting_of_this_call_is_the_answer(rig: "Rig") -> None:
    script = rig.script("tool", "print(1)\n")
    rig.start(script)
    assert b"a server waits for this call" in rig.verb("why", script).stdout
    for name, value in {"UNSNARL": "off", "PYTHONHASHSEED": "random", "NOTIFY_SOCKET": "/x"}.items():
        usual, rig.env = rig.env, rig.env | {name: value}
        assert f"{name}{'' if name == 'NOTIFY_SOCKET' else f'={value}'}".encode() in rig.verb("why", script).stdout
        rig.env = usual
    rig.verb("stop")
    assert b"no server waits for this call yet" in rig.verb("why", script).stdout


def test_another_command_of_the_same_name_is_not_meant(rig: "Rig") -> None:
    rig.start(rig.script("tool", "print(1)\n"))
    (rig.directory / "other").mkdir()
    other = shutil.copy(rig.directory / "bin" / "tool", rig.directory / "other" / "tool")
    outcome = rig.verb("why", str(other))
    assert outcome.returncode == 1
    assert b"nothing is known about" in outcome.stderr


def test_an_archive_without_a_first_line_is_called_one(rig: "Rig") -> None:
    path = rig.directory / "bin" / "app.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__main__.py", "print(1)\n")
    assert b"archive without a first line" in rig.verb("why", str(path)).stdout
    assert b"archive" in rig.verb("start", str(path)).stderr
    assert b"archive" in rig.verb("enable", str(path)).stderr


def test_a_command_that_does_not_exist_is_not_to_be_learned(rig: "Rig") -> None:
    for name in ("no-such-command", "./no-such-script.py"):
        outcome = rig.verb("why", name)
        assert (outcome.returncode, outcome.stdout) == (127, b"")
        assert outcome.stderr.startswith(f"error: no such command: {name}\nhint: check the name".encode())


def test_a_directory_is_called_one(rig: "Rig") -> None:
    assert b"it is a directory" in rig.verb("why", str(rig.directory / "work")).stdout


def test_a_full_disk_is_the_reason(rig: "Rig") -> None:
    """Such a start learned the command again for a minute, and said nothing of the disk."""
    script = rig.script("tool", "print(1)\n")
    if (unshare := shutil.which("unshare")) is None:
        pytest.skip("unshare(1) is not installed")
    become = [unshare, "--mount"] if os.geteuid() == 0 else [unshare, "--mount", "--map-root-user"]
    rig.house.mkdir(mode=0o700)
    lines = f"mount -t tmpfs -o size=16k,mode=700 none {shlex.quote(str(rig.house))} || exit 99\n"
    for verb in ("start", "why", "run"):
        lines += f"{UNSNARL} warm {verb} -- {script}\necho status $?\n"
    lines += f"ls {shlex.quote(str(rig.house))} | grep -v log\n"
    outcome = rig.plain(*become, "sh", "-c", lines, stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
    # In a root that is no mount point, unshare(1) cannot change the propagation of mounts.
    if outcome.returncode == 99 or outcome.stdout.startswith(b"unshare: "):
        pytest.skip(f"no file system can be mounted here: {outcome.stdout.decode()}")
    room = f"the runtime directory {rig.house} has no room left: free some space".encode()
    start, why, run, left = outcome.stdout.split(b"status ")
    assert start.startswith(b"error: no server can start\nhint: " + room)
    assert b"runs plainly" in why
    assert room in why
    assert run == b"0\n1\n"
    assert all(name.endswith(b".calls") for name in left.split()[1:]), left  # beside logs: no empty file of facts
