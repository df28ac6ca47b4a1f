"""`unsnarl warm why` answers for the call that is named, in the circumstances in which it is asked."""

import shutil
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

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
