"""A process that waits for the end of a child handles signals meanwhile, whichever of its threads gets them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from tests.integration.waiting import WATCHDOG_S
from unsnarl.child_end import wait_for_the_end
from unsnarl.doctor import trial
from unsnarl.lab.experiment import Confinement
from unsnarl.lab.running import process

ASKS = """\
import os, signal, sys
os.kill(int(sys.argv[1]), signal.SIGUSR1)
open(sys.argv[2]).read()
"""
"""Sends its parent a signal, and ends when the parent's handler opens a pipe."""


def run_of_the_doctor(words: list[str]) -> int:
    return trial.run_command(words, os.environ, WATCHDOG_S).status


def run_of_the_laboratory(words: list[str]) -> int:
    process.execute(words, Confinement(), WATCHDOG_S)
    return 0


@contextmanager
def given_to_another_thread(number: signal.Signals) -> Generator[None]:
    """Let another thread get the signal, so that it interrupts no call of the main thread."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait, args=(WATCHDOG_S,))
    thread.start()
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)
        done.set()
        thread.join()


@pytest.mark.parametrize("run", [run_of_the_doctor, run_of_the_laboratory])
def test_a_handler_runs_while_the_child_does(tmp_path: Path, run: Callable[[list[str]], int]) -> None:
    program, pipe = tmp_path / "program.py", tmp_path / "pipe"
    program.write_text(ASKS)
    os.mkfifo(pipe)

    def answer(_number: int, _frame: FrameType | None) -> None:
        with pipe.open("w"):
            pass

    earlier = signal.signal(signal.SIGUSR1, answer)
    try:
        with given_to_another_thread(signal.SIGUSR1):
            assert run([sys.executable, str(program), str(os.getpid()), str(pipe)]) == 0
    finally:
        signal.signal(signal.SIGUSR1, earlier)


def test_a_thread_waits_without_handlers() -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "raise SystemExit(3)"], os.environ)
    earlier = signal.getsignal(signal.SIGCHLD)
    thread = threading.Thread(target=wait_for_the_end, args=(pid,))
    thread.start()
    thread.join(WATCHDOG_S)
    assert not thread.is_alive()
    assert signal.getsignal(signal.SIGCHLD) is earlier
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


STARTS_DOCTOR = """\
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
if sys.argv[1] == "refused":
    def refuse(pid, flags=0):
        raise OSError("no such call")
    os.pidfd_open = refuse
if sys.argv[1] == "by the C library":  # as in builds for old kernels
    del os.pidfd_open
    from unsnarl import child_end
    child_end.LOOK_EVERY_MS = None  # only the descriptor tells of the end
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
earlier = signal.getsignal(signal.SIGCHLD)
from unsnarl.doctor import trial
status = trial.run_command([sys.executable, "-c", "raise SystemExit(3)"], os.environ, 100.0).status
assert signal.getsignal(signal.SIGCHLD) == earlier
raise SystemExit(status)
"""
"""Runs a program while SIGCHLD is blocked, and ends with the program's status."""


@pytest.mark.parametrize("descriptor", ["given", "by the C library", "refused"])
@pytest.mark.parametrize("ends", ["default", "ignored"])
def test_the_end_is_noticed_while_the_signal_of_it_is_blocked(descriptor: str, ends: str) -> None:
    command = [sys.executable, "-c", STARTS_DOCTOR, descriptor, ends]
    assert subprocess.run(command, check=False, timeout=WATCHDOG_S).returncode == 3


def test_trace_starts_with_the_signal_of_ends_blocked(tmp_path: Path) -> None:
    starts = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]); "
        "os.execv(sys.executable, [sys.executable, '-m', 'unsnarl', *sys.argv[1:]])"
    )
    words = [sys.executable, "-c", starts, "trace", "-c", "raise SystemExit(3)"]
    assert subprocess.run(words, check=False, timeout=WATCHDOG_S, cwd=tmp_path, capture_output=True).returncode == 3
