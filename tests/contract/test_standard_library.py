"""CPython's own tests of its primitives, on ours, in the running interpreter.

They run in interpreters of their own: they count threads, fork and send signals.
An interpreter without its `test` package (a distribution's) skips them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.contract.cpython.suite import Module, choose
from tests.contract.repeated import RUN_LIMIT_S, failing_each_time, has_time_to_repeat, name_of

HERE = Path(__file__).parent

KNOWN_DIFFERENCES = {
    # The test requires that the public classes were defined in threading.py.
    "test__all__ (test.test_threading.MiscTestCase.test__all__)",
    "test__all__ (test.test_threading.MiscTestCase)",
}

UNDER_PATCH: tuple[tuple[Module, ...], ...] = (
    (Module("test_queue"),),
    (Module("test_sched"),),
    (Module("test_threading"),),
    (Module("test_concurrent_futures.test_thread_pool"), Module("test_concurrent_futures", ("*ThreadPool*",))),
    (Module("test_concurrent_futures.test_future"), Module("test_concurrent_futures", ("*FutureTests*",))),
    (Module("test_asyncio.test_locks"),),
    (Module("test_asyncio.test_queues"),),
    (Module("test_asyncio.test_threads"),),
    (Module("test_asyncio.test_runners"),),
)
"""Those of the interpreter's tests that use what is patched, and take seconds. Of
test_concurrent_futures the process pools are left out, of test_asyncio what tests sockets,
pipes and processes: minutes each, and none of it waits on a primitive of ours."""

needs_test_package = pytest.mark.skipif(
    find_spec("test") is None or find_spec("test.lock_tests") is None,
    reason="this interpreter comes without CPython's test package",
)


def run(runner: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / runner), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)


@needs_test_package
@has_time_to_repeat
@pytest.mark.parametrize(("runner", "at_least"), [("lock_tests_runner.py", 70), ("queue_tests_runner.py", 25)])
def test_cpython_tests_pass(runner: str, at_least: int) -> None:
    """`at_least` is below the number of the oldest interpreter: newer ones test shutdown as well."""
    said: list[str] = []

    def failures() -> set[str]:
        completed = run(runner)
        said.append(completed.stderr[-4000:])
        counts = json.loads(completed.stdout.splitlines()[-1])
        assert counts["run"] >= at_least, completed.stderr
        return {name_of(test) for test in counts["failures"] + counts["errors"]}

    assert not failing_each_time(failures), said


@needs_test_package
@has_time_to_repeat
@pytest.mark.parametrize("choice", UNDER_PATCH, ids=lambda choice: choice[0].name)
def test_cpython_tests_pass_under_patch(choice: tuple[Module, ...]) -> None:
    present, absent = choose((choice,))
    if absent:
        pytest.skip(f"this interpreter comes without test.{choice[0].name}")
    module = present[0]
    said: list[str] = []

    def failures() -> set[str]:
        completed = run("patched_interpreter_runner.py", module.name, *module.match)
        said.append(completed.stderr[-4000:])
        assert "Ran " in completed.stderr, completed.stderr[-4000:]
        lines = completed.stderr.splitlines()
        return {name_of(line.split(": ", 1)[1]) for line in lines if line.startswith(("FAIL: ", "ERROR: "))}

    assert not failing_each_time(failures, KNOWN_DIFFERENCES), said
