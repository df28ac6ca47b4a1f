"""The native command and the Python verb run the same program with the same words and settings.

The native command handles a command line alone if it understands all of it; the Python verb handles every command
line. So each line is run both ways and compared. An interpreter that starts under ``PYTHONPROFILEIMPORTTIME`` writes
one header, which shows how many interpreters a line needed.
"""

import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import PYTHON, UNSNARL

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

SHOW = """\
import os, re, sys
print(sys.argv, sys.orig_argv, sys.path[0], sys.flags, sys.executable)
print(re.sub(r"main_pid=\\d+", lambda found: f"main_pid={found[0] == f'main_pid={os.getpid()}'}",
    os.environ.get("UNSNARL_RUN", "none")))
print(sorted((name, value) for name, value in os.environ.items() if name not in ("UNSNARL_RUN", "_")))
"""

HEADER = b"import time: self [us] | cumulative | imported package"

ALONE = {
    "a script": ["app.py", "a b", "", "--stats"],
    "a script by its path": ["./app.py"],
    "a link": ["link.py"],
    "a script with options": ["-u", "-Wd", "-X", "dev", "--stats=all", "--no-children", "app.py"],
    "a slice": ["--slice", "2.50", "--no-kernel-hints", "app.py"],
    "a slice without a fraction": ["--slice=5", "--patch", "app.py"],
    "a module": ["-m", "app", "-x"],
    "a package": ["-um", "package.part"],
    "a module of the standard library": ["-m", "json.tool", "--help"],
    "an isolated module": ["-I", "-m", "json.tool", "--help"],
    "a text": ["-c", SHOW, "-c"],
    "a text in its word": [f"-c{SHOW}"],
    "no text": ["-c", ""],
    "standard input": ["-", "x"],
    "a directory": ["project", "x"],
    "a directory with a slash": ["project/"],
    "a command": ["tool", "x"],
    "a command behind two dashes": ["--", "tool", "--stats"],
    "a file behind two dashes": ["--", "./app.py"],
    "a name with a dash": ["--", "-u", "x"],
    "a device": ["/dev/null"],
}
"""What the native command does without another interpreter."""

BY_PYTHON = {
    "an archive": ["archive.pyz", "x"],
    "an archive with a first line": ["marked.pyz", "x"],
    "a command by env": ["--", "tool-by-env"],
    "a pack that is not there": ["--pack", "none.pack", "app.py"],
    "a slice as Python spells it": ["--slice", "1e1", "app.py"],
    "a namespace package": ["-m", "namespace"],
    "nothing": [],
    "no such file": ["missing.py"],
    "no such command": ["--", "missing"],
    "no such module": ["-m", "no_such_module"],
    "a directory that is no program": ["./package"],
    "a dangling link": ["dangling.py"],
    "an option that python refuses": ["-S", "app.py"],
    "a command without site": ["--", "tool-without-site"],
    "an unknown option": ["--unknown", "app.py"],
    "help": ["--help"],
}
"""What it leaves to the Python verb."""


@pytest.fixture
def world(programs: "Programs") -> "Programs":
    """Return a directory with one program of each kind."""
    for name in ("app.py", "package/part.py", "project/__main__.py", "-u"):
        programs.write(name, SHOW)
    programs.write("package/__init__.py", "")
    programs.write("namespace/inner.py", SHOW)
    (programs.directory / "link.py").symlink_to("app.py")
    (programs.directory / "dangling.py").symlink_to("nowhere.py")
    with zipfile.ZipFile(programs.directory / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", SHOW)
    whole = (programs.directory / "archive.pyz").read_bytes()
    (programs.directory / "marked.pyz").write_bytes(b"#!/usr/bin/env python3\n" + whole)
    name = Path(PYTHON).name
    for tool, head in {
        "tool": f"#!{PYTHON} -sE",
        "tool-by-env": f"#!/usr/bin/env {name}",
        "tool-without-site": f"#!{PYTHON} -S",
    }.items():
        programs.write(f"bin/{tool}", f"{head}\n{SHOW}").chmod(0o755)
    return programs


def run(world: "Programs", words: list[str], *way: str, **more: str) -> "Outcome":
    """Run a line one way; the directory of commands comes first in PATH, then the tests' environment."""
    path = os.pathsep.join([str(world.directory / "bin"), str(Path(PYTHON).parent), os.defpath])
    return world.execute([*way, "run", *words], env={"PATH": path, **more}, stdin=SHOW.encode())


def both_ways(world: "Programs", words: list[str], **more: str) -> "Outcome":
    """Run a line natively and by the Python verb, and return what both show."""
    native = run(world, words, UNSNARL, **more)
    by_python = run(world, words, PYTHON, "-P", "-c", "import unsnarl.cli, sys; sys.exit(unsnarl.cli.main())", **more)
    if any(word.startswith("--stats") for word in words):  # the figures differ
        native, by_python = native._replace(stderr=b""), by_python._replace(stderr=b"")
    assert native == by_python
    return native


@pytest.mark.parametrize("words", [*ALONE.values(), *BY_PYTHON.values()], ids=[*ALONE, *BY_PYTHON])
def test_both_ways_run_the_same(world: "Programs", words: list[str]) -> None:
    shown = both_ways(world, words)
    if "app.py" in words and shown.status == 0 and "--no-children" not in words:
        assert b"main_pid=True abi=" in shown.stdout


@pytest.mark.parametrize(
    "more",
    [
        {"UNSNARL": "off"},
        {"UNSNARL_RUN": "kernel_hints=yes children=yes stats=no main_pid=1 abi=another prefix=/other"},
        {"PYTHONSAFEPATH": "1"},
        {"LC_ALL": "C"},
        {"LC_CTYPE": "C"},
        {"PATH": ""},
        {"PATH": f":{os.defpath}"},
        {"PYTHONPATH": "elsewhere"},
        {"PYTHONWARNINGS": "error"},
    ],
    ids=lambda more: " ".join(f"{name}={value}" for name, value in more.items()),
)
def test_both_ways_understand_the_environment_alike(world: "Programs", more: dict[str, str]) -> None:
    for words in (["app.py"], ["-m", "app"], ["tool"], ["-c", SHOW]):
        both_ways(world, words, **more)


def interpreters(world: "Programs", words: list[str], **more: str) -> int:
    """Return how many interpreters a line starts; the program itself starts none."""
    return run(world, words, UNSNARL, PYTHONPROFILEIMPORTTIME="1", **more).stderr.count(HEADER)


@pytest.mark.parametrize("words", ALONE.values(), ids=ALONE)
def test_one_interpreter_starts(world: "Programs", words: list[str]) -> None:
    if Path(os.path.realpath(PYTHON)).name.rpartition(".")[0] != "python3":
        pytest.skip(f"{os.path.realpath(PYTHON)} has no version in its name, so the Python verb is asked")
    options = [flag for word in words if word.startswith("-") and not word.startswith("--") for flag in word[1:2]]
    is_deaf = "I" in options or "tool" in words  # to variables of python
    assert interpreters(world, words) == (not is_deaf)
    assert interpreters(world, words, UNSNARL="off") == (not is_deaf)


def test_the_process_has_the_signals_of_its_caller(world: "Programs") -> None:
    """An interpreter before the program would ignore SIGPIPE, and exec keeps that."""
    text = "import os; os.execv('/bin/grep', ['grep', 'SigIgn', '/proc/self/status'])"
    line = f'"$0" run -c "{text}"; "$1" -c "{text}"'
    one, other = world.execute(["/bin/sh", "-c", line, UNSNARL, sys.executable]).stdout.splitlines()
    assert one == other
