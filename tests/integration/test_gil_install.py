"""Installing and uninstalling: once, twice, concurrently, under load, and with failures.

The interpreter is compared before and after, byte for byte: its global offset
table and the protection of its pages.
"""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs
from tests.integration.gil_programs import BINDINGS, EAGER

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

FRESH_PROCESSES = 30
"""A thousand processes are a stress test."""

SAME = """
def assert_same(before, after):
    assert before.mappings == after.mappings, (before.mappings, after.mappings)
    rebound = after.rebound_since(before)
    assert not rebound, {hex(a): (hex(x), hex(y)) for a, (x, y) in rebound.items()}
"""


def test_installing_twice_is_one_install(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
gil.install()
gil.install()
assert gil.installed()
assert gil.uninstall() is True
assert not gil.installed()
assert gil.uninstall() is False
contention.work_through()
""",
    )


def test_the_image_notices_an_installation(programs: "Programs") -> None:
    """Without this test, a comparison of the wrong pages would always pass."""
    printed = gil_programs.succeed(
        programs,
        """
before = interpreter_image.take()
gil.install()
print(len(interpreter_image.take().rebound_since(before)))
""",
        EAGER,
    )
    assert 3 <= int(printed) <= 28, "three functions at least are required, fifteen are known, in two objects at most"


@pytest.mark.parametrize("binding", BINDINGS)
def test_uninstalling_leaves_every_byte_as_it_was(programs: "Programs", binding: str) -> None:
    gil_programs.succeed(
        programs,
        SAME
        + """
gil.installed()
before = interpreter_image.take()
gil.install()
contention.work_through()
assert gil.uninstall()
assert_same(before, interpreter_image.take())
""",
        BINDINGS[binding],
    )


@pytest.mark.parametrize("binding", BINDINGS)
def test_install_as_the_first_act_beside_contending_threads(programs: "Programs", binding: str) -> None:
    """The dynamic linker binds a function at its first call, which may happen during the installation."""
    for _ in range(FRESH_PROCESSES if binding == "lazy" else FRESH_PROCESSES // 3):
        gil_programs.succeed(
            programs,
            """
import _thread
steps = [0, 0, 0]
def hog(place):
    while True:
        steps[place] += 1
        contention.turn() if place else None
for place in range(3):
    _thread.start_new_thread(hog, (place,))
gil.install()
assert gil.installed()
before = steps.copy()
while any(now == then for now, then in zip(steps, before)):
    contention.block()
assert gil.installed()
""",
            BINDINGS[binding],
        )


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_thousand_toggles_under_load(programs: "Programs", binding: str) -> None:
    """Every thread makes progress meanwhile, and no change is left behind.

    An installation releases the GIL twice; the short interval brings it back in
    time, so that there is about one toggle a millisecond.
    """
    gil_programs.succeed(
        programs,
        SAME
        + """
contention.work_through()
before = interpreter_image.take()
sys.setswitchinterval(1e-4)
with contention.hogs(2) as hogs, contention.pollers(2) as pollers, contention.lock_users(3) as users:
    for toggle in range(1000):
        gil.install() if toggle % 2 == 0 else gil.uninstall()
        if toggle % 100 == 99:
            for threads in (hogs, pollers, users):
                threads.await_progress()
assert not gil.installed()
assert_same(before, interpreter_image.take())
contention.work_through()
""",
        BINDINGS[binding],
    )


def test_installing_and_uninstalling_in_several_threads_at_once(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
start = threading.Barrier(4)
errors = []
def toggle():
    try:
        start.wait()
        for _ in range(200):
            gil.install()
            gil.installed()
            gil.uninstall()
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=toggle) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
gil.install()
assert gil.installed()
contention.work_through()
""",
    )


def test_switched_off_by_the_environment_nothing_is_touched(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        SAME
        + """
before = interpreter_image.take()
gil.install()
assert not gil.installed()
assert_same(before, interpreter_image.take())
assert gil.uninstall() is False
""",
        {"UNSNARL": "off", **EAGER},
    )


def test_unreadable_memory_maps_refuse_the_installation(programs: "Programs") -> None:
    """No file can be opened any more, so /proc/self/maps cannot be read."""
    gil_programs.succeed(
        programs,
        SAME
        + """
import resource
gil.installed(), gil.stats()
before = interpreter_image.take()
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
interval = sys.getswitchinterval()
try:
    gil.install(slice_ms=500)
except UnsupportedInterpreter as error:
    assert "maps" in error.reason, error.reason
    assert error.hint
else:
    raise AssertionError("installed")
finally:
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
assert not gil.installed()
assert_same(before, interpreter_image.take())
assert sys.getswitchinterval() == interval
contention.work_through()
gil.install()
assert gil.installed()
contention.work_through()
""",
        EAGER,
    )


def test_no_thread_to_probe_with_refuses_the_installation(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        SAME
        + """
import forbidden_calls
gil.installed()
with contention.hogs(2) as hogs:
    before = interpreter_image.take()
    forbidden_calls.forbid_threads()
    try:
        gil.install()
    except UnsupportedInterpreter as error:
        assert error.hint
    else:
        raise AssertionError("installed")
    assert not gil.installed()
    assert_same(before, interpreter_image.take())
    hogs.await_progress(100)
""",
        EAGER,
    )


def test_pages_that_must_not_become_writable_refuse_the_installation(programs: "Programs") -> None:
    """The pages of the table, or, where the table is always writable, those of the probe's stack."""
    gil_programs.succeed(
        programs,
        SAME
        + """
import forbidden_calls
gil.installed()
before = interpreter_image.take()
forbidden_calls.forbid_writable_pages()
try:
    gil.install()
except UnsupportedInterpreter as error:
    assert error.hint
    assert not gil.installed()
else:
    assert gil.uninstall()
assert_same(before, interpreter_image.take())
contention.compute()
""",
        EAGER,
    )


def test_a_bad_share_is_refused_and_changes_nothing(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
for bad in (-0.1, 0.91, 20, float("nan"), float("inf")):
    try:
        gil.install(batch_share=bad)
    except ValueError:
        pass
    else:
        raise AssertionError(bad)
assert not gil.installed()
for good in (0, 0.9, None):
    gil.install(batch_share=good)
    assert gil.installed()
""",
    )


def test_a_bad_slice_is_refused_and_changes_nothing(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
interval = sys.getswitchinterval()
for bad in (0, -1, float("nan"), float("inf"), 1e12):
    try:
        gil.install(slice_ms=bad)
    except ValueError:
        pass
    else:
        raise AssertionError(bad)
assert not gil.installed()
assert sys.getswitchinterval() == interval
""",
    )


def test_a_switch_interval_beyond_any_clock_is_the_longest_slice(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
sys.setswitchinterval(1e11)
gil.install()
with contention.pollers(3):
    contention.work_through()
assert gil.installed()
""",
    )
