"""Real commands, plain and warm, compared byte for byte: output, errors, status; on pipes and on a terminal.

``pip`` and ``pytest`` are there wherever the tests run; the others are compared where they are installed next to them.
"""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.waiting import WATCHDOG_S, until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

SCRIPTS = sysconfig.get_path("scripts")
PYTHON = [sys.executable, "-m"]
COMMANDS: dict[str, list[str]] = {
    "pip version": [*PYTHON, "pip", "--version"],
    "pytest version": [f"{SCRIPTS}/pytest", "--version"],
    "json": [*PYTHON, "json.tool", "no-such-file"],
    "hg version": [f"{SCRIPTS}/hg", "--version"],
    "hg status": [f"{SCRIPTS}/hg", "status"],
    "hg help": [f"{SCRIPTS}/hg", "help", "commit"],
    "hg error": [f"{SCRIPTS}/hg", "no-such-verb"],
    "black": [f"{SCRIPTS}/black", "--check", "untidy.py"],
    "black error": [f"{SCRIPTS}/black", "no-such-file"],
    "http": [f"{SCRIPTS}/http", "--offline", "POST", "example.org/x", "name=value"],
    "http error": [f"{SCRIPTS}/http", "--no-such-option"],
    "aws": [f"{SCRIPTS}/aws", "--version"],
    "aws error": [f"{SCRIPTS}/aws", "no-such-service"],
    "ansible": [f"{SCRIPTS}/ansible", "--version"],
}


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest, rig: "Rig") -> list[str]:
    """A command line, and its input."""
    words: list[str] = COMMANDS[request.param]
    if not os.path.exists(words[0]):
        pytest.skip(f"{os.path.basename(words[0])} is not installed beside the tests")
    (rig.directory / "work" / "untidy.py").write_text("x = [1,2,\n   3]\n")
    return words


def test_on_pipes(rig: "Rig", command: list[str]) -> None:
    started = rig.verb("start", "--", *command)
    plain = rig.plain(*command)
    warm = rig.served(*command) if started.returncode == 0 else rig.warm(*command)
    assert (warm.returncode, warm.stdout, warm.stderr) == (plain.returncode, plain.stdout, plain.stderr), rig.log()


def test_after_learning_from_a_run(rig: "Rig", command: list[str]) -> None:
    """Modules that the first run has loaded are imported ahead from the second one on: the usual state."""
    if rig.verb("start", "--", *command).returncode != 0:
        # Some standard modules rule a command out: uuid reads the whole environment where it runs ifconfig.
        reason = rig.verb("why", command[0]).stdout.decode().splitlines()[1]
        assert "differs from run to run" not in reason, "what differs of these commands can be set anew"
        pytest.skip(f"it must not be imported ahead: {reason.strip()}")
    plain = rig.plain(*command)
    for _ in range(3):
        rig.start(*command)  # what was learned may have changed the key
        warm = rig.served(*command)
        assert (warm.returncode, warm.stdout, warm.stderr) == (plain.returncode, plain.stdout, plain.stderr), rig.log()
        if list(rig.house.glob("*.wanted")):
            until(lambda: ": ends, " in rig.log())


WRITERS: dict[str, list[str]] = {
    "hg": [f"{SCRIPTS}/hg", "init", "repository"],
    "black": [f"{SCRIPTS}/black", "untidy.py"],
    "pip": [
        *PYTHON,
        "pip",
        "download",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--dest",
        "wheels",
        "./tiny-1-py3-none-any.whl",
    ],
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_files_that_are_written(rig: "Rig", name: str) -> None:
    words = WRITERS[name]
    if not os.path.exists(words[0]):
        pytest.skip(f"{name} is not installed beside the tests")
    written: list[dict[str, tuple[int, bytes]]] = []
    for run in (rig.plain, rig.warm):
        directory = rig.directory / f"written-{len(written)}"
        directory.mkdir()
        (directory / "untidy.py").write_text("x = [1,2,\n   3]\n")
        tiny_wheel(directory / "tiny-1-py3-none-any.whl")
        started = rig.plain(UNSNARL, "warm", "start", "--", *words, cwd=directory).returncode == 0
        outcome = (rig.served if started and run == rig.warm else run)(*words, cwd=directory)
        assert outcome.returncode == 0, outcome.stderr.decode() + rig.log()
        written.append(contents(directory))
    assert written[0] == written[1]
    assert len(written[0]) > 2 or written[0]["untidy.py"][1] == b"x = [1, 2, 3]\n"


def tiny_wheel(path: Path) -> None:
    """Write a wheel with nothing in it but its name."""
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"),
            ("WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ):
            wheel.writestr(zipfile.ZipInfo(f"tiny-1.dist-info/{name}"), text)


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and bytes of everything below a directory."""
    return {
        str(path.relative_to(directory)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in directory.rglob("*")
    }


def test_on_a_terminal(rig: "Rig", command: list[str]) -> None:
    # One that must not be imported ahead runs plainly, and is still compared.
    status, _ = on_a_terminal(rig, UNSNARL, "warm", "start", "--", *command)
    plain = on_a_terminal(rig, *command)
    warm = on_a_terminal(rig, UNSNARL, "warm", "run", *(["--require"] if status == 0 else []), "--", *command)
    assert warm == plain, rig.log()


def on_a_terminal(rig: "Rig", *words: str) -> tuple[int, bytes]:
    """Run a command with a terminal of its own as its standard streams; return status and output."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=rig.directory / "work", env=rig.env | {"PAGER": "cat"}
    )
    rig.processes.append(process)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # EIO: no process has the terminal open
            break
        shown += data
    os.close(ours)
    return process.wait(WATCHDOG_S), shown
