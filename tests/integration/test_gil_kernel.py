"""Hints to the kernel about CPU-bound threads, and their withdrawal.

Where the kernel refuses hints (a sandbox), these programs pass without a check.
"""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil


def test_it_is_taken_back_when_the_thread_blocks_with_nobody_beside_it(programs: "Programs") -> None:
    """No thread waits for the GIL any more, so this thread never waits in the queue either."""
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


def test_it_is_taken_back_of_threads_of_c_code_that_inherited_it(programs: "Programs") -> None:
    """They never wait for the GIL, as those of a BLAS library."""
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + """
import ctypes
libc = ctypes.PyDLL(None)  # a call that does not release the GIL
thread = ctypes.c_ulong()
def policies():
    return [os.sched_getscheduler(int(thread)) for thread in os.listdir("/proc/self/task")]
with contention.hogs(2):
    become_batch()
    # Nothing that blocks for a moment comes before this: the thread would be made normal.
    assert libc.pthread_create(ctypes.byref(thread), None, libc.pause, None) == 0
seen.append(policies())
assert gil.uninstall()
assert set(policies()) == {os.SCHED_OTHER}, (seen, policies())
""",
    )


def test_threads_that_find_the_gil_free_do_not_inherit_it(programs: "Programs") -> None:
    """The threads never wait in the queue, where a new thread of C code would be made normal."""
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


OWN_CHOICE = """
import ctypes, platform, struct
sys.setswitchinterval(1e-4)
set_attr, get_attr = {"x86_64": (314, 315), "aarch64": (274, 275)}[platform.machine()]
libc = ctypes.PyDLL(None)  # a call that does not release the GIL
size = 48
def choose(policy, slice_ns):
    attr = struct.pack("=IIQiIQQQ", size, policy, 0, 0, 0, slice_ns, 0, 0)
    return libc.syscall(set_attr, 0, attr, 0) == 0 and chosen() == (policy, slice_ns)
def chosen():
    attr = ctypes.create_string_buffer(size)
    libc.syscall(get_attr, 0, attr, size, 0)
    _, policy, _, _, _, slice_ns, _, _ = struct.unpack("=IIQiIQQQ", attr)
    return policy, slice_ns
"""
"""A thread chooses a policy and a slice of its own, where the kernel knows slices (Linux 6.12)."""


def test_a_slice_of_the_programs_own_is_left_alone(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + OWN_CHOICE
        + """
if choose(os.SCHED_OTHER, 1_000_000):
    with contention.hogs(2):
        become_batch(most_waits=200)  # the hint would come at the first wait, and never does
    contention.block()
    assert chosen() == (os.SCHED_OTHER, 1_000_000), chosen()
""",
    )


def test_what_the_program_chooses_later_is_left_alone(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + OWN_CHOICE
        + """
with contention.hogs(2):
    become_batch()
    has_chosen = choose(os.SCHED_BATCH, 2_000_000)
for _ in range(10):
    contention.block()
gil.uninstall()
if has_chosen:
    assert chosen() == (os.SCHED_BATCH, 2_000_000), chosen()
""",
    )
