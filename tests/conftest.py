"""Fixtures for all tests: programs in a directory of their own.

Invariant: a program runs in a process of its own, with the interpreter of the tests, under a watchdog, and without any
setting of unsnarl inherited from outside.
"""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

# The duration of an example depends on the load of the machine, so it is not tested.
settings.register_profile("unsnarl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unsnarl")

# The process that starts the tests may ignore signals, as nohup does, and as a shell does for background
# jobs: every program of the tests would inherit that.
for _number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python itself ignores these two
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

WATCHDOG_S = 540.0
"""Far longer than any program of a test runs on any machine; a program that exceeds it hangs, and is killed."""

UNSNARL = os.path.join(sysconfig.get_path("scripts"), "unsnarl")
"""The installed command: ``python -m`` would put the tests' own files on the path."""
_PYTHON = os.path.join(sysconfig.get_path("scripts"), "python")
PYTHON = _PYTHON if os.path.exists(_PYTHON) else sys.executable
"""The interpreter as a user types it; pytest may have been started as ``python3.15`` of the same environment."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that CI shares out its interpreters' tests with."""
    parser.addoption("--half", type=int, choices=(0, 1), help="run only one half of the tests, chosen by their names")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other half of the tests, and skip tests of the GIL where there is no GIL."""
    half = config.getoption("half")
    if half is not None:
        other = [item for item in items if half_of(item.nodeid) != half]
        items[:] = [item for item in items if half_of(item.nodeid) == half]
        config.hook.pytest_deselected(items=other)
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return
    for item in items:
        if item.get_closest_marker("needs_gil") is not None:
            item.add_marker(pytest.mark.skip(reason="this interpreter has no GIL to schedule"))


def half_of(name: str) -> int:
    """Return the half that a test belongs to, 0 or 1: always the same one, whatever tests come and go."""
    return zlib.crc32(name.encode()) & 1


NOTICE = re.compile(rb"unsnarl: the program runs without the GIL scheduler: this is a free-threaded build: [^\n]*\n")
"""The notice of ``unsnarl run`` on stderr where there is no GIL: removed from every outcome there."""


def without_notice(stderr: bytes) -> bytes:
    """Return a program's stderr, without the notice on a build that causes it."""
    return NOTICE.sub(b"", stderr) if sysconfig.get_config_var("Py_GIL_DISABLED") else stderr


class Outcome(NamedTuple):
    """Everything that the caller of a program observes."""

    status: int
    """The exit status, or minus the signal that ended it."""
    stdout: bytes
    stderr: bytes

    @property
    def complaint(self) -> str:
        """Its stderr, as text."""
        return self.stderr.decode(errors="backslashreplace")


class Programs:
    """Writes programs into one directory and runs them there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, name: str, text: str) -> Path:
        """Write a file, and its directories, and return its path."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def execute(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Outcome:
        """Run a command to its end; ``env`` is added to the environment of the tests."""
        with subprocess.Popen(
            [os.fspath(word) for word in command],
            cwd=cwd or self.directory,
            env={**clean_environment(), **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(stdin, timeout=WATCHDOG_S)
            except BaseException:
                # Including the children, which would keep the pipes open.
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Outcome(process.returncode, stdout, without_notice(stderr))

    def python(self, *words: str | Path, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Outcome:
        """Run ``python WORDS...`` with the stock GIL."""
        return self.execute([PYTHON, *words], env=env, stdin=stdin)

    def unsnarl(self, *words: str | Path, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Outcome:
        """Run ``unsnarl WORDS...``."""
        return self.execute([UNSNARL, *words], env=env, stdin=stdin)

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Outcome:
        """Run ``unsnarl run WORDS...``."""
        return self.unsnarl("run", *words, env=env, stdin=stdin)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without the variables of unsnarl and python."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("UNSNARL", "PYTHON"))}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    """Return a directory of programs, empty at first."""
    return Programs(tmp_path)
