"""Every signal reaches the traced program, from any sender, and none changes the reported status."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import PYTHON, UNSNARL, clean_environment
from tests.integration.trace_programs import needs_hooks
from tests.integration.waiting import LISTEN, LISTENS, WATCHDOG_S

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.conftest import Programs


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


COUNTING = f"""\
{LISTENS}
heard = []
def hear(number, _):
    heard.append(signal.Signals(number).name)
    os.write(1, heard[-1].encode() + b"\\n")
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, hear)
os.write(1, b"ready\\n")
while "SIGUSR1" not in heard:
    {LISTEN}
raise SystemExit(42)
"""
"""Prints each signal that it receives, and ends at SIGUSR1."""


@contextlib.contextmanager
def started(programs: Programs, *command: str, stdin: int = subprocess.DEVNULL) -> Generator[subprocess.Popen[bytes]]:
    """Start a command that traces COUNTING, and wait until the program is ready."""
    programs.write("app.py", COUNTING)
    with subprocess.Popen(
        [*command, "app.py"],
        cwd=programs.directory,
        stdin=stdin,
        stdout=subprocess.PIPE,
        bufsize=0,  # so that select sees all data
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
        start_new_session=command[0] != "setsid",  # setsid starts a session itself
    ) as process:
        try:
            assert heard(process) == "ready"
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def heard(process: subprocess.Popen[bytes]) -> str:
    """Return the next line of the program."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], WATCHDOG_S)
    assert ready, "the program hears nothing"
    return process.stdout.readline().decode().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_a_signal_to_the_command_alone_reaches_the_program(programs: Programs, number: signal.Signals) -> None:
    with started(programs, UNSNARL, "trace") as process:
        process.send_signal(number)
        assert heard(process) == number.name
        process.send_signal(signal.SIGUSR1)
        assert heard(process) == "SIGUSR1"
        assert process.wait(WATCHDOG_S) == 42
    assert (programs.directory / "trace.html").exists()


def test_ctrl_c_is_the_programs(programs: Programs) -> None:
    """The terminal sends SIGINT to the program and to the supervisor: only the program decides how it ends.

    A forwarded second SIGINT would not be visible here: two pending signals of one number merge.
    """
    if shutil.which("setsid") is None:
        pytest.skip("no setsid, which gives a program its terminal")
    ours, theirs = os.openpty()
    try:
        with started(programs, "setsid", "--ctty", UNSNARL, "trace", stdin=theirs) as process:
            for _ in range(10):  # a second signal that follows immediately can merge with the first
                os.write(ours, b"\x03")
                assert heard(process) == "SIGINT"
            process.send_signal(signal.SIGUSR1)
            assert heard(process) == "SIGUSR1"
            assert process.wait(WATCHDOG_S) == 42
    finally:
        os.close(ours)
        os.close(theirs)


def may_trace(directory: Path) -> bool:
    if shutil.which("strace") is None:
        return False
    words = ["strace", "-f", "-o", str(directory / "probe"), "true"]
    return subprocess.run(words, check=False, capture_output=True, timeout=WATCHDOG_S).returncode == 0


def test_signals_pass_strace(programs: Programs) -> None:
    if not may_trace(programs.directory):
        pytest.skip("no strace here, or it may not trace")
    with started(programs, UNSNARL, "trace", "--syscalls") as process:
        process.send_signal(signal.SIGTERM)
        assert heard(process) == "SIGTERM"
        process.send_signal(signal.SIGUSR1)
        assert heard(process) == "SIGUSR1"
        assert process.wait(WATCHDOG_S) == 42
    page = (programs.directory / "trace.html").read_text()
    assert '"reason":""' in page


BROKEN_REPORT = """\
import os, signal, sys
from unsnarl.cli import main
from unsnarl.trace import report
def make(*_):
    {happens}
report.make = make
sys.exit(main(["trace", "-c", "raise SystemExit(7)"]))
"""


@pytest.mark.parametrize(
    ("happens", "said", "left"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", "unsnarl: the report was interrupted", 0),
        ("raise ValueError('two\\nlines')", "unsnarl: the report failed: ValueError: two\\nlines", 1),
    ],
)
def test_the_status_is_the_programs_whatever_becomes_of_the_report(
    programs: Programs, happens: str, said: str, left: int
) -> None:
    outcome = programs.execute([PYTHON, "-c", BROKEN_REPORT.format(happens=happens)])
    assert outcome.status == 7, outcome.complaint
    lines = outcome.complaint.splitlines()
    assert lines[0] == said
    kept = [entry.name for entry in programs.directory.iterdir() if entry.name.startswith(".unsnarl-trace-")]
    assert len(kept) == left
    assert [name in lines[1] for name in kept] == [True] * left
    assert len(lines) == 1 + left
    if kept:
        assert programs.unsnarl("trace", "--read", kept[0]).status == 0
