"""Races of the scheduler, repeated: each test provokes failures that need rare orders of events.

Run by ``scripts/stress``. Delays are injected from outside (``saboteur``), so that
the tested hooks are the shipped hooks.
"""

import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.extensions import compiler
from tests.integration import gil_programs
from tests.integration.gil_programs import BINDINGS

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

pytestmark = pytest.mark.needs_gil

FIRST_ACTS = 1000


@pytest.fixture(scope="session")
def saboteur(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiler.shared_library("saboteur", tmp_path_factory.mktemp("saboteur"))


@pytest.fixture(scope="session")
def crash_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiler.shared_library("crash_report", tmp_path_factory.mktemp("crash_report"))


@pytest.mark.parametrize("binding", BINDINGS)
def test_install_as_the_first_act_a_thousand_times(programs: "Programs", binding: str) -> None:
    """In children of a process that has never waited for its GIL: there nothing is bound yet either."""
    gil_programs.succeed(
        programs,
        f"""
import _thread
def first_act():
    contention.guard_child()
    steps = [0, 0, 0]
    def hog(place):
        while True:
            steps[place] += 1
            if place:
                contention.block()
    for place in range(3):
        _thread.start_new_thread(hog, (place,))
    gil.install()
    assert gil.installed()
    while not all(steps):
        contention.block()
    assert gil.installed()
for _ in range({FIRST_ACTS}):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            first_act()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
""",
        BINDINGS[binding],
    )


WORK = {
    "threads that end while the GIL is asked for": """
with contention.hogs(2) as hogs, contention.pollers(2) as pollers:
    for _ in range(60):
        contention.work_through(6)
        hogs.await_progress()
        pollers.await_progress()
""",
    "locks and echoes": """
pair = contention.PingPong()
with contention.hogs(2) as hogs, contention.lock_users(4) as users:
    for _ in range(20):
        pair.step()
        users.await_progress()
    hogs.await_progress()
""",
    "installations": """
sys.setswitchinterval(1e-4)
with contention.hogs(2) as hogs, contention.pollers(2) as pollers:
    for _ in range(60):
        gil.uninstall()
        contention.block()
        gil.install()
        pollers.await_progress()
    hogs.await_progress()
""",
    "forks": """
with contention.hogs(2), contention.pollers(3):
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                contention.guard_child()
                contention.work_through()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
""",
}


@pytest.mark.parametrize("interval_s", [0.005, 1e-5])
@pytest.mark.parametrize("work", WORK)
def test_delays_at_every_call_of_the_hooks(programs: "Programs", saboteur: Path, work: str, interval_s: float) -> None:
    """Between decision and sleep, wake-up and return, unlock and forced switch: each may take long."""
    for seed in (1, 2, 3):
        gil_programs.succeed(
            programs,
            f"gil.install()\nsys.setswitchinterval({interval_s})\n{WORK[work]}",
            {"LD_PRELOAD": str(saboteur), "SABOTEUR_SEED": str(seed)},
        )


def test_page_protections_that_fail_once(programs: "Programs", saboteur: Path) -> None:
    """Whichever mprotect fails, the interpreter is exactly as it was."""
    printed = gil_programs.succeed(
        programs,
        """
import ctypes
library = ctypes.CDLL(os.environ["LD_PRELOAD"])
gil.installed()
before = interpreter_image.take()
failures = 0
for number in range(1, 40):
    library.saboteur_fail_mprotect(number)
    try:
        gil.install()
    except UnsupportedInterpreter as error:
        failures += 1
        assert "writable" in error.reason, error.reason
        assert not gil.installed()
    else:
        library.saboteur_fail_mprotect(0)
        assert gil.uninstall()
    library.saboteur_fail_mprotect(0)
    after = interpreter_image.take()
    assert after.mappings == before.mappings
    assert not after.rebound_since(before)
contention.work_through()
print(failures)
""",
        {"LD_PRELOAD": str(saboteur), "LD_BIND_NOW": "1", "SABOTEUR_SEED": "0"},
    )
    if printed.strip() == "0":
        pytest.skip("this interpreter's table is in pages that are always writable: mprotect is not needed")


LATE = re.compile(
    r"^crash: access to (0x[0-9a-f]+) in (?:\? < )?(?:PyThreadState_New < )?PyGILState_Ensure < ", re.MULTILINE
)
"""The stack of https://github.com/python/cpython/issues/124619, as `crash_report` writes it."""
PAST_NULL = 1 << 20
"""An access through a null pointer to an interpreter's state fails at a lower address: that state is smaller."""


def is_late_crash(outcome: "Outcome") -> bool:
    """Return whether CPython crashed because a C thread requested the GIL when the interpreter was gone already.

    That thread has not waited for any GIL by then, so the scheduler has no part in it. CPython 3.11.7 ends so now and
    then, without the scheduler too: docs/design/gil-testing.md has the counts.
    """
    found = LATE.search(outcome.complaint)
    return outcome.status == -signal.SIGSEGV and found is not None and int(found[1], 16) < PAST_NULL


def test_foreign_threads_that_want_the_gil_at_the_end(programs: "Programs", saboteur: Path, crash_report: Path) -> None:
    """C threads in PyGILState_Ensure, which know nothing of Python's end."""
    outcomes = [
        gil_programs.start(
            programs,
            """
import ctypes
ctypes.CDLL(os.environ["CRASH_REPORT"])
library = ctypes.PyDLL(os.environ["LD_PRELOAD"])
gil.install()
library.saboteur_start_foreign_threads(4)
contention.hogs(2).__enter__()
while library.saboteur_foreign_turns() < 20:
    contention.block()
sys.exit(5)
""",
            {"LD_PRELOAD": str(saboteur), "SABOTEUR_SEED": "0", "CRASH_REPORT": str(crash_report)},
        )
        for _ in range(20)
    ]
    others = [outcome for outcome in outcomes if not is_late_crash(outcome)]
    assert others
    assert {outcome.status for outcome in others} == {5}, [outcome.complaint for outcome in others]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="3.14 hangs such a thread, here the main one (gh-131185)")
def test_the_crash_of_a_late_thread_is_told_from_others(
    programs: "Programs", saboteur: Path, crash_report: Path
) -> None:
    def ends_with(text: str) -> "Outcome":
        return gil_programs.start(
            programs,
            f"""
import ctypes
ctypes.CDLL(os.environ["CRASH_REPORT"])
library = ctypes.PyDLL(os.environ["LD_PRELOAD"])
{text}
""",
            {"LD_PRELOAD": str(saboteur), "SABOTEUR_SEED": "0", "CRASH_REPORT": str(crash_report)},
        )

    late = ends_with("library.saboteur_acquire_after_the_end()")
    assert is_late_crash(late), (late.status, late.complaint)
    for other in ("ctypes.string_at(0)", "ctypes.pythonapi.PyThreadState_New(None)", "os.kill(os.getpid(), 11)"):
        outcome = ends_with(other)
        assert outcome.status == -signal.SIGSEGV, (other, outcome.status)
        assert not is_late_crash(outcome), (other, outcome.complaint)
