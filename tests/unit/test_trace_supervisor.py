"""The supervisor restores signal handlers, and finds the program behind its tracer."""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.integration.waiting import LISTEN, LISTENS
from unsnarl.trace.running.sampling import sampled
from unsnarl.trace.running.supervisor import FORWARDED, FROM_TERMINAL, Supervisor


def test_the_handlers_of_signals_are_kept() -> None:
    def own(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError

    numbers = [signal.Signals[name] for name in (*FORWARDED, *FROM_TERMINAL)]
    before = {number: signal.getsignal(number) for number in numbers}
    kept: dict[signal.Signals, Any] = dict.fromkeys(numbers, own)
    kept |= {signal.SIGHUP: signal.SIG_IGN, signal.SIGUSR2: signal.SIG_DFL}
    try:
        for number, handler in kept.items():
            signal.signal(number, handler)
        ending = Supervisor().run([sys.executable, "-c", "raise SystemExit(3)"], os.environ, time.monotonic_ns())
        assert {number: signal.getsignal(number) for number in numbers} == kept
    finally:
        for number, was in before.items():
            signal.signal(number, was)
    assert ending.status == 3


def test_the_end_is_noticed_where_the_ends_of_children_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    left = [writing]

    def waitid(*arguments: int) -> os.waitid_result | None:
        """Let the program end once the supervisor waits for it."""
        while left:
            os.close(left.pop())
        return plain(*arguments)

    plain = os.waitid
    monkeypatch.setattr(os, "waitid", waitid)
    was = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        script = "import os, sys; os.read(int(sys.argv[1]), 1); raise SystemExit(3)"
        command = [sys.executable, "-c", script, str(reading)]
        ending = Supervisor().run(command, os.environ, time.monotonic_ns())
        assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, was)
        os.close(reading)
    assert ending.status == 3


SENDS_MANY = f"""\
import sys
{LISTENS}
count = 0
def hear(number, _):
    global count
    count += 1
    os.kill(int(sys.argv[1]), signal.SIGUSR1 if count < 20_000 else signal.SIGTERM)
signal.signal(signal.SIGUSR1, hear)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(count != 20_000))
os.kill(int(sys.argv[1]), signal.SIGUSR1)
while True:
    {LISTEN}
"""
"""Sends the supervisor a signal for each that it hears, so one that is lost is the last."""


def test_no_signal_is_lost_while_the_supervisor_returns_to_its_wait(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SENDS_MANY)
    with sampled(tmp_path):
        command = [sys.executable, str(program), str(os.getpid())]
        ending = Supervisor().run(command, os.environ, time.monotonic_ns())
    assert ending.status == 0


ENDS_AT_SIGTERM = f"""\
import sys
{LISTENS}
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
os.kill(int(sys.argv[1]), signal.SIGTERM)
while True:
    {LISTEN}
"""


def test_a_signal_passes_the_tracer(tmp_path: Path) -> None:
    """A shell stands in for the tracer: it runs the program as its child, and dies if it receives the signal."""
    program = tmp_path / "program.py"
    program.write_text(ENDS_AT_SIGTERM)
    script = '"$0" "$1" "$2"; exit $?'
    command = ["sh", "-c", script, sys.executable, str(program), str(os.getpid())]
    ending = Supervisor(is_traced=True).run(command, os.environ, time.monotonic_ns())
    assert ending.status == 5


def test_a_tracer_that_runs_nothing_is_not_waited_for_in_vain() -> None:
    """A tracer that ends first, as strace without permission: the signal has no receiver, and its status counts."""
    script = 'kill -TERM "$0"; exit 6'
    ending = Supervisor(is_traced=True).run(["sh", "-c", script, str(os.getpid())], os.environ, time.monotonic_ns())
    assert ending.status == 6
