"""``unsnarl enable``, ``disable`` and ``status``: an environment is switched on, and off again without a trace.

Each test has an environment of its own, which borrows the installed package: what is enabled there is enabled nowhere
else.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Outcome, Programs, clean_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.needs_gil

SHOW = "import unsnarl.gil; print(unsnarl.gil.installed())"
ENABLED_FILE = "unsnarl-enabled.pth"
STARTUP_FILE = "unsnarl.pth"


class Environment:
    """A virtual environment that has unsnarl, and one command ``shown`` that prints whether the scheduler is in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
        self.python = str(folder / "bin" / "python")
        (self.site,) = folder.glob("lib/python*/site-packages")
        installed = Path(sysconfig.get_path("purelib"))
        for name in ("unsnarl", "_unsnarl_boot.py", STARTUP_FILE):
            os.symlink(installed / name, self.site / name)
        self.command("shown", SHOW)

    def command(self, name: str, text: str) -> Path:
        """Write a console script."""
        path = self.folder / "bin" / name
        path.write_text(f"#!{self.python}\n{text}\n")
        path.chmod(0o755)
        return path

    def execute(self, *words: str, env: "Mapping[str, str] | None" = None) -> Outcome:
        """Run a command of this environment."""
        return Programs(self.folder).execute(words, env=env)

    def unsnarl(self, *words: str, env: "Mapping[str, str] | None" = None) -> Outcome:
        """Run ``unsnarl WORDS...`` of this environment."""
        return self.execute(self.python, "-m", "unsnarl", *words, env=env)

    def is_on(self, *words: str, env: "Mapping[str, str] | None" = None) -> bool:
        """Run a program that prints whether the scheduler is installed."""
        shown = self.execute(*(words or (str(self.folder / "bin" / "shown"),)), env=env)
        assert (shown.status, shown.complaint) == (0, "")
        return shown.stdout == b"True\n"

    def files(self) -> dict[str, bytes]:
        """Return every file of the environment with its content, without compiled ones."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("enable") / "venv")


@pytest.fixture
def environment(shared: Environment) -> Iterator[Environment]:
    yield shared
    (shared.site / ENABLED_FILE).unlink(missing_ok=True)


def assert_refused(outcome: Outcome, status: int, *said: str) -> None:
    assert (outcome.status, outcome.stdout) == (status, b""), outcome.complaint
    assert re.fullmatch(r"error: [^\n]+\nhint: [^\n]+\n", outcome.complaint), outcome.complaint
    for text in said:
        assert text in outcome.complaint


def test_every_program_is_enabled_and_disabled_without_a_trace(environment: Environment) -> None:
    before = environment.files()
    assert not environment.is_on()
    assert environment.unsnarl("enable").status == 0
    assert environment.is_on()
    assert environment.is_on(environment.python, "-c", SHOW)
    assert not environment.is_on(env={"UNSNARL": "off"})
    assert environment.unsnarl("status").stdout.startswith(b"enabled for every program of ")
    assert environment.unsnarl("status").status == 0
    switched_off = environment.unsnarl("status", env={"UNSNARL": "off"})
    assert switched_off.status == 3
    assert b"without effect on programs started from here: UNSNARL=off" in switched_off.stdout.replace(b"\n", b" ")
    assert environment.unsnarl("disable").status == 0
    assert not environment.is_on()
    assert environment.files() == before


def test_only_named_commands_are_enabled_with_their_children(environment: Environment) -> None:
    other = environment.command("other", SHOW)
    spawning = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}])"
    (environment.site / "tool.py").write_text(SHOW)
    parent = environment.command("parent", spawning)
    assert environment.unsnarl("enable", "shown", "parent").status == 0
    assert environment.unsnarl("enable", "tool", "manage.py").status == 0
    assert environment.is_on()
    assert environment.is_on(str(parent))
    assert environment.is_on(environment.python, "-um", "tool", "-m", "x")
    assert environment.is_on(environment.python, "-umtool", "x")
    (environment.folder / "manage.py").write_text(SHOW)
    assert environment.is_on(environment.python, "-u", "manage.py", "runserver")
    assert not environment.is_on(str(other), "shown")
    assert not environment.is_on(environment.python, "-c", SHOW, "shown")
    assert environment.unsnarl("disable", "shown").stdout.startswith(b"still enabled for parent, tool, manage.py ")
    assert not environment.is_on()
    assert environment.is_on(environment.python, "-m", "tool")
    assert environment.unsnarl("disable", "parent", "tool", "manage.py").status == 0
    assert not (environment.site / ENABLED_FILE).exists()


def test_options_are_those_of_run(environment: Environment) -> None:
    show = "import sys, queue; print(hasattr(queue.Queue.put, '__code__'), sys.getswitchinterval())"
    assert environment.execute(environment.python, "-c", show).stdout.startswith(b"True ")  # written in Python
    environment.unsnarl("enable", "--patch", "--slice", "2")
    assert environment.execute(environment.python, "-c", show).stdout == b"False 0.002\n"
    assert b"every program (--patch --slice 2)" in environment.unsnarl("status").stdout


def test_an_explicit_run_wins(environment: Environment) -> None:
    environment.unsnarl("enable", "--slice", "2")
    show = "import sys; print(sys.getswitchinterval())"
    assert environment.unsnarl("run", "--slice", "3", "-c", show).stdout == b"0.003\n"
    child = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {SHOW!r}]))"
    assert environment.unsnarl("run", "-c", child).stdout == b"True\n"
    assert environment.unsnarl("run", "--no-children", "-c", child).stdout == b"False\n"


def test_nothing_is_loaded_for_a_program_that_is_not_meant(environment: Environment) -> None:
    show = "import sys; print(*(name for name in sys.modules if name.startswith('unsnarl')))"
    environment.unsnarl("enable", "shown")
    assert environment.execute(environment.python, "-c", show).stdout == b"\n"
    environment.unsnarl("disable")
    environment.unsnarl("enable")
    assert environment.execute(environment.python, "-c", show, env={"UNSNARL": "off"}).stdout == b"\n"


def test_the_standard_library_is_left_to_the_program(environment: Environment) -> None:
    show = "import sys; print(*(name for name in sorted(sys.modules) if 'unsnarl' not in name))"
    plain = environment.execute(environment.python, "-c", show).stdout
    environment.unsnarl("enable")
    assert environment.execute(environment.python, "-c", show).stdout == plain


def test_once_unsnarl_is_gone_the_file_does_nothing(environment: Environment) -> None:
    environment.unsnarl("enable")
    package = environment.site / "unsnarl"
    target = os.readlink(package)
    package.unlink()
    try:
        assert environment.execute(environment.python, "-c", "print(1)") == Outcome(0, b"1\n", b"")
    finally:
        package.symlink_to(target)


def test_an_environment_that_was_moved_is_named(environment: Environment, tmp_path: Path) -> None:
    environment.unsnarl("enable")
    moved = tmp_path / "moved"
    shutil.copytree(environment.folder, moved, symlinks=True)
    python = str(moved / "bin" / "python")
    assert Programs(tmp_path).execute([python, "-c", SHOW]).stdout == b"False\n"
    shown = Programs(tmp_path).execute([python, "-m", "unsnarl", "status"])
    assert b"without effect: the environment was moved" in shown.stdout
    assert (shown.status, shown.complaint) == (3, "")


def test_an_environment_by_a_link_is_the_same(environment: Environment, tmp_path: Path) -> None:
    environment.unsnarl("enable")
    link = tmp_path / "current"
    link.symlink_to(environment.folder)
    python = str(link / "bin" / "python")
    assert environment.is_on(python, "-c", SHOW)
    assert environment.execute(python, "-m", "unsnarl", "status").status == 0


@pytest.mark.parametrize("option", ["-I", "-s", "-P", "-E", "-OO"])
def test_options_of_the_interpreter_leave_it_enabled(environment: Environment, option: str) -> None:
    environment.unsnarl("enable")
    assert environment.is_on(environment.python, option, "-c", SHOW)
    assert environment.is_on(environment.python, "-c", SHOW, env={"PYTHONSAFEPATH": "1"})


def test_another_environment_stays_as_it_is(environment: Environment, tmp_path: Path) -> None:
    environment.unsnarl("enable")
    other = Environment(tmp_path / "other")
    assert not other.is_on()
    calling = f"import subprocess; subprocess.run([{other.python!r}, '-c', {SHOW!r}])"
    assert not environment.is_on(environment.python, "-c", calling)
    assert other.unsnarl("status").status == 3


def test_an_interpreter_of_another_version_has_no_unsnarl(environment: Environment, tmp_path: Path) -> None:
    """As after an update of the interpreter: its packages are in a directory of the earlier version's name."""
    updated = Environment(tmp_path / "updated")
    native = Path(sysconfig.get_path("scripts")) / "unsnarl"
    command = updated.folder / "bin" / "unsnarl"
    shutil.copy(native, command)
    assert updated.execute(str(command), "enable").status == 0
    for path in (updated.site / "unsnarl", updated.site / "_unsnarl_boot.py", updated.site / STARTUP_FILE):
        path.unlink()
    for words in (["status"], ["enable"], ["run", "-c", "pass"]):
        assert_refused(updated.execute(str(command), *words), 1, f"unsnarl is not installed for {updated.python}")
    assert updated.execute(updated.python, "-c", "print(1)") == Outcome(0, b"1\n", b"")


def test_an_environment_whose_interpreter_is_gone(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "unsnarl"
    shutil.copy(Path(sysconfig.get_path("scripts")) / "unsnarl", command)
    assert_refused(
        environment.execute(str(command), "status"), 127, "unsnarl needs the interpreter beside it, and there is none"
    )


def test_status_of_an_environment_that_is_not_enabled(environment: Environment) -> None:
    shown = environment.unsnarl("status")
    assert (shown.status, shown.complaint) == (3, "")
    assert shown.stdout.startswith(b"not enabled: ")
    assert environment.unsnarl("disable").status == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["enable", "no_such_command"], 127, "no_such_command"),
        (["enable", "bin/shown"], 2, "`unsnarl enable shown`"),
        (["enable", ""], 2, "''"),
        (["enable", "two\nlines"], 2, "two\\nlines"),
        (["enable", "python3.13"], 2, "names no program"),
        (["enable", "unsnarl"], 2, "never enabled"),
        (["enable", "--stats"], 2, "unknown option --stats, in `unsnarl enable`"),
        (["enable", "--slice"], 2, "lacks its value"),
        (["enable", "--slice", "no"], 2, "--slice takes milliseconds"),
        (["enable", "--patch=yes"], 2, "takes no value"),
        (["enable", "text"], 1, "is not a Python script"),
        (["disable", "shown"], 1, "is not enabled"),
        (["disable", "--all"], 2, "unknown option --all"),
        (["status", "shown"], 2, "unexpected argument 'shown'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_one_clear_line(environment: Environment, words: list[str], status: int, said: str) -> None:
    (environment.folder / "bin" / "text").write_text("#!/bin/sh\n")
    assert_refused(environment.unsnarl(*words), status, said)
    assert not (environment.site / ENABLED_FILE).exists()


def test_contradictions_are_refused(environment: Environment) -> None:
    environment.unsnarl("enable")
    assert_refused(environment.unsnarl("enable", "shown"), 1, "every program already")
    assert_refused(environment.unsnarl("disable", "shown"), 1, "every program")
    assert_refused(environment.unsnarl("demo", "--quick"), 1, "both sides would have unsnarl")
    assert_refused(environment.unsnarl("lab", "run", "--quick"), 1, "is enabled")


def test_an_installation_without_the_startup_file(environment: Environment) -> None:
    startup_file = environment.site / STARTUP_FILE
    target = os.readlink(startup_file)
    startup_file.unlink()
    try:
        assert_refused(environment.unsnarl("enable"), 1, "unsnarl.pth is in no site-packages")
    finally:
        startup_file.symlink_to(target)


def test_a_directory_that_may_not_be_written(environment: Environment) -> None:
    if os.geteuid() == 0:
        # Root may write everywhere; a directory of that name stops it too.
        (environment.site / ENABLED_FILE).mkdir()
        try:
            assert_refused(environment.unsnarl("enable"), 1, ENABLED_FILE)
            assert_refused(environment.unsnarl("status"), 1, ENABLED_FILE)
        finally:
            (environment.site / ENABLED_FILE).rmdir()
        return
    environment.site.chmod(0o555)
    try:
        assert_refused(environment.unsnarl("enable"), 1, ENABLED_FILE)
    finally:
        environment.site.chmod(0o755)


def test_doctor_names_it_and_still_has_a_stock_way(environment: Environment) -> None:
    environment.unsnarl("enable")
    (environment.folder / "app.py").write_text(
        f"{SHOW.replace('print', 'state = str')}\nopen('seen', 'a').write(state)\n"
    )
    shown = environment.unsnarl("doctor", "--runs", "2", "--seconds", "0", "--json", "app.py")
    assert shown.status == 0, shown.complaint
    assert json.loads(shown.stdout)["enabled"] == "every program"
    # Two stock runs, two of each remedy; traced runs and the like come after them.
    assert (environment.folder / "seen").read_text().count("False") >= 2


def test_the_environment_of_the_tests_is_not_enabled() -> None:
    assert "UNSNARL_RUN" not in clean_environment()
    assert not Path(sysconfig.get_path("purelib"), ENABLED_FILE).exists()
