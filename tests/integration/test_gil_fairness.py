"""No thread starves, and a thread that holds a lock can release it.

The one bound in time is the contract's: a runnable thread gets the GIL within
50 ms times half the number of runnable threads, of a processor that it has to itself.
The tests allow generous slack, extended on a busy machine by the processor time that other
processes get; a thread that starves exceeds any bound. One of three windows has to keep the
bound, since a machine that stands still for a moment spoils one window. Everything else is
progress, under the watchdog.
"""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

BOUND = """
SLACK = 4
begun_ns, spent_ns = time.monotonic_ns(), time.process_time_ns()
def bound_ns(runnable):
    # Some thread computes all the time: longer than that, the process was without a processor.
    passed_ns, used_ns = time.monotonic_ns() - begun_ns, time.process_time_ns() - spent_ns
    return SLACK * 50_000_000 * runnable // 2 * max(1, passed_ns / used_ns)
def longest_wait_ns():
    return max(each.wait_max_ns for each in gil.stats().classes)
def assert_nobody_starves(runnable, *progress):
    waited = []
    for _ in range(3):
        gil.reset_stats()
        for threads, steps in progress:
            threads.await_progress(steps)
        waited.append((longest_wait_ns(), bound_ns(runnable)))
        if waited[-1][0] <= waited[-1][1]:
            return
    raise AssertionError(waited)
"""


def test_a_hundred_wake_up_abusers_beside_one_cpu_thread(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        BOUND
        + """
gil.install()
with contention.pollers(100) as abusers, contention.hogs(1) as hog:
    assert_nobody_starves(101, (hog, 2000), (abusers, 3))
""",
    )


def test_a_hundred_users_of_one_lock_beside_one_cpu_thread(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        BOUND
        + """
gil.install()
with contention.lock_users(100) as users, contention.hogs(1) as hog:
    assert_nobody_starves(101, (hog, 2000), (users, 2))
""",
    )


def test_every_cpu_thread_has_its_turn(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        BOUND
        + """
gil.install()
with contention.hogs(8) as hogs:
    assert_nobody_starves(9, (hogs, 500))
""",
    )


def test_hinted_threads_starve_nobody(programs: "Programs") -> None:
    """A CPU-bound thread that claims to be interactive, among others that do not."""
    gil_programs.succeed(
        programs,
        """
gil.install()
hinted = threading.local()
def pretend():
    if not hasattr(hinted, "done"):
        gil.hint("interactive")
        hinted.done = True
    contention.compute()
with contention.Threads(2, pretend) as liars, contention.hogs(1) as hog, contention.pollers(1) as poller:
    for threads in (hog, poller, liars):
        threads.await_progress(100)
""",
    )


def test_a_cpu_thread_that_holds_a_lock_gives_it_back(programs: "Programs") -> None:
    """Priority inversion: the lock's waiters are served first, and its holder last."""
    gil_programs.succeed(
        programs,
        """
gil.install()
lock = threading.Lock()
def hold_and_compute():
    with lock:
        for _ in range(200):
            contention.compute()
    # The lock is unfair by itself: a thread that takes it again immediately keeps it.
    contention.block()
def want_it():
    contention.turn()
    with lock:
        pass
with contention.Threads(1, hold_and_compute), contention.hogs(3), contention.pollers(20):
    with contention.Threads(2, want_it) as wanting:
        wanting.await_progress(5)
""",
    )


def test_a_thread_that_echoes_is_served_beside_cpu_threads(programs: "Programs") -> None:
    """With an interval of 2 s the stock interpreter would not serve it 600 times before the watchdog.

    The interval is also the slice of CPU-bound threads: they need a shorter one until each has begun. With a
    longer interval, a round of slices would look like a hang: if a busy machine takes the processor from a
    thread while it holds the GIL, the thread passes for CPU-bound once.
    """
    gil_programs.succeed(
        programs,
        """
gil.install()
pair = contention.PingPong()
with contention.hogs(4):
    sys.setswitchinterval(2)
    for _ in range(300):
        pair.step()
    sys.setswitchinterval(0.005)
""",
    )
