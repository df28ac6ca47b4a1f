"""A learning run at idle priority is ended once waiting for it costs more, and never for more than calls have paid."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.warm.managing import patience
from unsnarl.warm.managing.patience import CALLS, LONGEST_S, Patience, is_over, used_ms

PLAIN_MS, RUN_MS = 155, 390


def wait_ms(calls_a_second: float, got: float, plain_ms: int = PLAIN_MS) -> tuple[int, float]:
    """Simulate a run that gets a share of a processor; return when it ends or is ended, and what is thrown away."""
    for now_ms in range(0, 1000 * LONGEST_S, 100):
        if got * now_ms >= RUN_MS:
            return now_ms, 0
        if is_over(int(calls_a_second * now_ms / 1000), got * now_ms, plain_ms, 10):
            return now_ms, got * now_ms
    return 1000 * LONGEST_S, got * 1000 * LONGEST_S


def test_a_suite_that_fills_the_machine_waits_for_about_as_many_calls_as_a_run_costs() -> None:
    # Two jobs on two processors: a dozen calls a second, and a hundredth of a processor for the run.
    assert wait_ms(12, got=0.01) == (300, 3)


def test_a_machine_that_is_full_of_other_work_is_left_alone() -> None:
    assert wait_ms(0.1, got=0.003)[0] == 1000 * LONGEST_S


def test_a_run_that_gets_a_processor_comes_to_its_end() -> None:
    assert wait_ms(6, got=0.9) == (500, 0)


def test_without_a_known_plain_call_there_is_nothing_to_compare_with() -> None:
    assert not is_over(10_000, 0, 0, 10)


def test_a_run_whose_costs_are_unknown_is_not_ended_early() -> None:
    assert not is_over(10_000, None, PLAIN_MS, 10)
    assert is_over(10_000, 0, PLAIN_MS, 10)


# Each spends a fifth of a second of processor time, writes how much it was, and waits.
SPEND = "import os, sys, threading, time\ndef spend():\n    while time.process_time() < 0.2: pass\n"
SAY = "print(int(1000 * time.process_time()), flush=True)\nsys.stdin.read()\n"
THREAD = "helper = threading.Thread(target=spend)\nhelper.start()\nhelper.join()\n"
PARENT = "if os.fork():\n    os.wait()\n    print(200, flush=True)\n    sys.stdin.read()\n    os._exit(0)\nspend()\n"
SPENDERS = {
    "the main thread": "spend()\n" + SAY,
    "a thread": THREAD + SAY,
    "a child": "if os.fork():\n    os.wait()\n    os._exit(0)\nspend()\n" + SAY,
    "a child that has ended": PARENT,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("by", SPENDERS)
def test_what_threads_and_children_have_spent_is_lost_as_well(by: str) -> None:
    argv = [sys.executable, "-c", SPEND + SPENDERS[by]]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        spent_ms = int(run.stdout.readline())
        used = used_ms(run.pid)
        run.stdin.close()
    assert used is not None
    assert used >= spent_ms
    assert used_ms(run.pid) is None, "it has ended and was waited for"


@given(calls=st.floats(0.01, 100), got=st.floats(0, 1), plain_ms=st.integers(1, 5000))
def test_what_is_thrown_away_before_the_time_is_up_is_paid_by_the_calls_that_came(
    calls: float, got: float, plain_ms: int
) -> None:
    ended_ms, lost_ms = wait_ms(calls, got, plain_ms)
    if ended_ms < 1000 * LONGEST_S:
        assert lost_ms <= 0.1 * plain_ms * calls * ended_ms / 1000 + 1e-6


@pytest.mark.timeout(60)
def test_calls_that_come_meanwhile_end_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stem, counts = str(tmp_path / "command"), tmp_path / "command.calls"
    (tmp_path / "command.ledger").write_text("call 155\n")
    counts.write_text("unsnarl-calls 2 60\nparts\nkey 60\n")
    looks: list[int] = []

    def used_ms(pid: int) -> float:
        looks.append(pid)
        counts.write_text(f"unsnarl-calls 2 {60 + len(looks)}\nparts\nkey 60\n")
        return 0

    monkeypatch.setattr(patience, "used_ms", used_ms)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as run:
        assert not Patience(stem, {}).waits_for(run)
        assert len(looks) == CALLS + 1  # what the last look has counted, none waits for
        run.kill()


@pytest.mark.timeout(60)
def test_a_run_that_ends_is_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as run:
        assert Patience(str(tmp_path / "unknown"), {}).waits_for(run)


def test_the_users_share_counts() -> None:
    assert patience.share_percent(b"25") == 25
    assert patience.share_percent(b"much") == patience.share_percent(b"") == 10
