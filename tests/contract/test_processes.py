"""The primitives between processes: the scenarios by start method, and CPython's own tests on them."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import robust_list
from tests.contract.repeated import RUN_LIMIT_S, failing_each_time, has_time_to_repeat

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("multiprocessing_tests_runner.py")

KNOWN_DIFFERENCES = {
    # They check how the standard library prints its locks, which do not say which process holds them, as ours do.
    "test_repr_lock",
    "test_repr_rlock",
    # A child takes the lock and ends. Ours can be taken as soon as the child is dead, which the test may see or not;
    # the standard library's is lost for ever.
    "test_lock_locked_2processes",
    "test_rlock_locked_2processes",
}
"""Requirements of CPython's tests on multiprocessing's classes that ours do not meet, on purpose."""

needs_test_package = pytest.mark.skipif(
    find_spec("test") is None or find_spec("test._test_multiprocessing") is None,
    reason="this interpreter comes without CPython's test package",
)


@pytest.mark.parametrize("scenarios", ["process_scenarios", "process_task_scenarios"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_scenarios(method: str, scenarios: str) -> None:
    command = [sys.executable, "-m", f"tests.contract.{scenarios}", method]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stdout.splitlines()[-1] == "ok"


@pytest.mark.skipif(platform.machine() not in robust_list.CALLS, reason="the numbers of its system calls are not known")
@pytest.mark.parametrize("scenarios", ["process_scenarios", "process_task_scenarios"])
def test_deaths_are_found_without_robust_lists(scenarios: str) -> None:
    command = [sys.executable, "-m", "tests.robust_list", f"tests.contract.{scenarios}", "fork"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    if completed.returncode == robust_list.CANNOT:
        pytest.skip(completed.stderr.strip())
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stdout.splitlines()[-1] == "ok"


@pytest.mark.skipif(not robust_list.is_taken(), reason="both calls are refused already")
@pytest.mark.skipif(platform.machine() not in robust_list.CALLS, reason="the numbers of its system calls are not known")
def test_without_a_filter_of_system_calls_there_is_a_reason() -> None:
    """No option of prctl(2) has the number 0."""
    program = "from tests import robust_list; robust_list._PR_SET_SECCOMP = 0; robust_list._main()"
    command = [sys.executable, "-c", program, "this"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == robust_list.CANNOT
    assert completed.stderr.strip() == "[Errno 22] the kernel takes no filter of system calls"


@needs_test_package
@has_time_to_repeat
def test_cpython_tests_pass() -> None:
    command = [sys.executable, str(RUNNER), "ours", "fork"]
    said: list[str] = []

    def failures() -> set[str]:
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)
        said.append(completed.stderr[-6000:])
        assert completed.stdout.strip(), completed.stderr[-4000:]
        outcomes = json.loads(completed.stdout.splitlines()[-1])
        assert len(outcomes) >= 30
        return {test for test, outcome in outcomes.items() if outcome == "failed"}

    assert not failing_each_time(failures, KNOWN_DIFFERENCES), said
