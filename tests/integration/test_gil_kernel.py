"""What the kernel is told of CPU-bound threads, and that it is told when they are no longer such.

Where the kernel cannot be told (a sandbox), these programs find nothing to complain about.
"""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil


def test_it_is_taken_back_when_the_thread_blocks_with_nobody_beside_it(programs: "Programs") -> None:
    """Nobody waits for the GIL any more, so the thread never waits in the queue either."""
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + """
with contention.hogs(2):
    become_batch()
for _ in range(100):
    contention.block()
assert os.sched_getscheduler(0) == os.SCHED_OTHER
""",
    )


def test_it_is_taken_back_of_all_threads_by_an_uninstall(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + """
contended = contention.hogs(2)
def policies():
    return [os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")]
with contended:
    become_batch()
    seen = policies()
    assert gil.uninstall()
    assert set(policies()) == {os.SCHED_OTHER}, (seen, policies())
    contended.await_progress(100)
    assert set(policies()) == {os.SCHED_OTHER}, policies()
    gil.install()
    become_batch()
""",
    )
