"""``unsnarl run -- COMMAND`` runs a console script of this environment, and no other."""

import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unsnarl.cli.program import console_script

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

BODY = "import sys; print(sys.argv, sys.orig_argv[1:], __file__, sys.path[0], sys.flags.isolated)\nsys.exit(6)\n"

ENV = "/usr/bin/env"

HEADS = {
    "kernel": f"#!{sys.executable}\n",
    "kernel, blanks": f"#! {sys.executable} \n",
    "kernel, options": f"#!{sys.executable} -sE\n",
    "shell, by pip": f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n",
    "shell, by uv": f"#!/bin/sh\n'''exec' '{sys.executable}' \"$0\" \"$@\"\n' '''\n",
    "env": f"#!{ENV} python-of-the-tests\n",
    "env -S": f"#!{ENV} -S python-of-the-tests -E\n",
}

REFUSED_HEADS = {
    "no script": "\x7fELF\x02",
    "shell script": "#!/bin/sh\necho hello\n",
    "perl": "#!/usr/bin/perl\n",
    "empty": "",
    "empty head": "#!\n",
    "shell, unfinished": "#!/bin/sh\n'''exec' '\n",
    "another interpreter": "#!/nowhere/bin/python3\n",
    "another by env": f"#!{ENV} python-of-nobody\n",
    "env of nothing": f"#!{ENV}\n",
}


class Commands:
    """A directory of commands on PATH."""

    def __init__(self, programs: "Programs") -> None:
        self.programs = programs
        self.directory = programs.directory / "bin"
        self.directory.mkdir()

    def write(self, name: str, text: str) -> Path:
        """Write an executable file on PATH."""
        path = self.programs.write(f"bin/{name}", text)
        path.chmod(0o755)
        return path

    @property
    def env(self) -> dict[str, str]:
        """Return the environment in which they are found."""
        return {"PATH": f"{self.directory}:{os.environ.get('PATH', os.defpath)}"}

    def run(self, *words: str) -> "Outcome":
        """Run ``unsnarl run WORDS...`` with the commands on PATH."""
        return self.programs.run(*words, env=self.env)


@pytest.fixture
def commands(programs: "Programs") -> Commands:
    """Return an empty directory of commands."""
    return Commands(programs)


def with_our_name(text: str) -> str:
    """Put the interpreter's own name where a head goes through ``env``."""
    return text.replace("python-of-the-tests", Path(sys.executable).name)


@pytest.mark.parametrize("name", HEADS)
def test_a_script_of_this_environment_runs_as_by_its_head(commands: Commands, name: str) -> None:
    script = commands.write("tool", with_our_name(HEADS[name]) + BODY)
    env = {"PATH": f"{commands.directory}:{Path(sys.executable).parent}:{os.defpath}"}
    itself = commands.programs.execute([script, "a b", "--stats"], env=env)
    assert itself.status == 6, itself.complaint
    assert commands.programs.run("--", "tool", "a b", "--stats", env=env) == itself
    assert commands.programs.run("tool", "a b", "--stats", env=env) == itself


@pytest.mark.parametrize("name", REFUSED_HEADS)
def test_another_command_is_refused(commands: Commands, name: str) -> None:
    script = commands.write("tool", REFUSED_HEADS[name] + BODY)
    for words in (["--", "tool"], ["tool"]):
        shown = commands.run(*words)
        assert shown.status == 126
        error, hint = shown.complaint.splitlines()
        assert error.startswith("error: ")
        assert str(script) in error
        assert hint.startswith("hint: ")


def test_a_script_of_another_environment_of_the_same_interpreter_is_refused(commands: Commands) -> None:
    """Both interpreters resolve to the same file: only the directory distinguishes the environments."""
    other = commands.programs.directory / "other" / "bin"
    other.mkdir(parents=True)
    (other / "python").symlink_to(os.path.realpath(sys.executable))
    commands.write("tool", f"#!{other}/python\n{BODY}")
    shown = commands.run("--", "tool")
    assert shown.status == 126
    assert str(other / "python") in shown.complaint


def test_a_script_without_site_is_refused(commands: Commands) -> None:
    script = commands.write("tool", f"#!{sys.executable} -sS\n{BODY}")
    shown = commands.run("--", "tool")
    assert shown.status == 126
    assert f"unsnarl run {script}" in shown.complaint
    assert commands.run(str(script)).status == 6


def test_a_relocatable_script_runs(commands: Commands) -> None:
    """The tool uv writes such first lines; the interpreter is next to the script."""
    head = "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''\n"
    commands.write("tool", head + BODY)
    (commands.directory / "python").symlink_to(sys.executable)
    assert commands.run("--", "tool").status == 126, "the interpreter beside it is not this environment's"
    named = console_script.interpreter_of(str(commands.directory / "tool"))
    assert named is not None
    assert named.path == str(commands.directory.resolve() / "python")


def test_a_missing_command(commands: Commands) -> None:
    commands.write("not-executable", HEADS["kernel"]).chmod(0o644)
    for name in ("no-such-command", "not-executable", "./no-such-command", "-m"):
        shown = commands.run("--", name)
        assert shown.status == 127
        assert shown.complaint.startswith("error: command not found: ")
        assert shown.complaint.count("\n") == 2


def test_a_file_goes_before_a_command_and_after_it_behind_two_dashes(commands: Commands) -> None:
    commands.write("tool", HEADS["kernel"] + "print('command')")
    commands.programs.write("tool", "print('file')")
    assert commands.run("tool").stdout == b"file\n"
    assert commands.run("--", "tool").stdout == b"command\n"
    assert commands.run("--", "./tool").stdout == b"file\n"


def test_a_directory_that_is_no_program_does_not_hide_a_command(commands: Commands) -> None:
    """A project's directory often has the name of its command."""
    commands.write("tool", HEADS["kernel"] + "print('command')")
    commands.programs.write("tool/__init__.py", "")
    assert commands.run("tool").stdout == b"command\n"
    commands.programs.write("tool/__main__.py", "print('directory')")
    assert commands.run("tool").stdout == b"directory\n"


def test_the_scripts_directory_goes_before_the_path(commands: Commands) -> None:
    """This very test runner is a console script of the environment."""
    if not Path(sysconfig.get_path("scripts"), "pytest").exists():
        pytest.skip(f"no pytest in {sysconfig.get_path('scripts')}")
    commands.write("pytest", HEADS["kernel"] + "print('from the path')")
    shown = commands.run("--", "pytest", "--version")
    assert shown.status == 0
    assert b"from the path" not in shown.stdout + shown.stderr
    assert b"pytest" in shown.stdout + shown.stderr


@pytest.mark.needs_gil
def test_commands_are_scheduled(commands: Commands) -> None:
    commands.write("tool", HEADS["kernel"] + "import unsnarl; print(unsnarl.gil.installed())")
    assert commands.run("--", "tool") == (0, b"True\n", b"")
    assert commands.run("-u", "--stats", "--", "tool").stdout == b"True\n"
