"""Sub-interpreters with their own GIL are not scheduled, and cannot install."""

import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

OWN_GIL = (3, 12)
"""First version in which a sub-interpreter may have a GIL of its own (PEP 684)."""

MODULE = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
def run(source):
    each = interpreters.create()
    try:
        error = interpreters.run_string(each, source)
        assert not error, error
    finally:
        interpreters.destroy(each)
"""

WORK = """
import threading, time
lock = threading.Lock()
def work():
    for _ in range(20):
        sum(range(500))
        time.sleep(0)
        with lock:
            sum(range(500))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

needs_own_gil = pytest.mark.skipif(
    sys.version_info < OWN_GIL, reason="before CPython 3.12 all interpreters share one GIL"
)


@needs_own_gil
def test_threads_under_another_gil(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        MODULE
        + f"""
gil.install()
with contention.hogs(2) as hogs, contention.pollers(2) as pollers:
    for _ in range(3):
        run({WORK!r})
        hogs.await_progress()
        pollers.await_progress()
assert gil.installed()
contention.work_through()
""",
    )


@needs_own_gil
def test_several_of_them_at_once_while_the_scheduler_comes_and_goes(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        MODULE
        + f"""
errors = []
def run_there():
    try:
        for _ in range(3):
            run({WORK!r})
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=run_there) for _ in range(2)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    gil.install()
    contention.work_through()
    gil.uninstall()
assert not errors, errors
""",
    )


def test_an_installation_inside_one_is_refused(programs: "Programs") -> None:
    """Either the interpreter refuses to load the extension there, or the scheduler refuses to install."""
    refused = """
try:
    from unsnarl import gil
    gil.install()
except Exception as error:
    assert type(error).__name__ in ("ImportError", "UnsupportedInterpreter"), repr(error)
else:
    raise AssertionError("installed")
"""
    gil_programs.succeed(
        programs,
        MODULE
        + f"""
run({refused!r})
assert not gil.installed()
gil.install()
run({refused!r})
assert gil.installed()
contention.work_through()
""",
    )
