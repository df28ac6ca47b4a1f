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


def test_threads_that_find_the_gil_free_do_not_inherit_it(programs: "Programs") -> None:
    """They never wait in the queue, where a new thread of C code would be made normal."""
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + """
import _thread
ended = _thread.allocate_lock()
ended.acquire()
def look():
    seen.append(os.sched_getscheduler(0))
    ended.release()
ends = []
def compute_until_the_end():
    while not ends:
        contention.compute()
for _ in range(5):
    ends.clear()
    hogs = [threading.Thread(target=compute_until_the_end) for _ in range(2)]
    for hog in hogs:
        hog.start()
    become_batch()
    ends.append(None)
    while any(hog.is_alive() for hog in hogs):
        contention.compute()
    _thread.start_new_thread(look, ())
    ended.acquire()
assert seen == [os.SCHED_OTHER] * 5, seen
""",
    )


@pytest.mark.parametrize(
    "start",
    [
        "os.execv(word[0], word)",
        "os.execve(word[0], word, os.environ)",
        "os.execve(os.open(word[0], os.O_RDONLY), word, os.environ)",
    ],
)
def test_a_program_that_takes_over_does_not_inherit_it(programs: "Programs", start: str) -> None:
    printed = gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + f"""
word = [sys.executable, "-c", "import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)"]
contention.hogs(2).__enter__()
become_batch()
{start}
""",
    )
    assert printed == "True\n"
