"""Signals, tracing, and the extremes of the switch interval, with the scheduler active."""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

WAITS = {
    "for the GIL": "while True: contention.compute()",
    "for a lock": "locked.acquire()",
    "for a condition": "never.wait()",
    "for a thread": "next(forever).join()",
    "in a sleep": "time.sleep(1000)",
    "in a read": "os.read(silent, 1)",
}


@pytest.mark.parametrize("waiting", WAITS)
def test_ctrl_c_reaches_a_main_thread_that_waits(programs: "Programs", waiting: str) -> None:
    gil_programs.succeed(
        programs,
        f"""
import signal
gil.install()
locked = threading.Lock()
locked.acquire()
never = threading.Event()
# One a round: before CPython 3.13 an interrupted join takes the thread for ended.
joinable = [threading.Thread(target=never.wait, daemon=True) for _ in range(10)]
for thread in joinable:
    thread.start()
forever = iter(joinable)
silent, _write = os.pipe()
# Not a semaphore: interrupted in its Python code, that of the library loses a wake-up.
begun, begin = os.pipe()
waiting = False
def interrupt():
    # Again and again: a signal just before a call that blocks does not interrupt it.
    while os.read(begun, 1):
        while waiting:
            os.kill(os.getpid(), signal.SIGINT)
            contention.block()
def raise_once(number, frame):
    global waiting
    if waiting:
        waiting = False
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, raise_once)
threading.Thread(target=interrupt, daemon=True).start()
with contention.hogs(3), contention.pollers(2):
    for _ in range(10):
        try:
            waiting = True
            os.write(begin, b'x')
            {WAITS[waiting]}
        except KeyboardInterrupt:
            continue
        raise AssertionError("not interrupted")
""",
    )


def test_a_storm_of_timers(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
import signal
gil.install()
fired = 0
def count(number, frame):
    global fired
    fired += 1
signal.signal(signal.SIGALRM, count)
with contention.hogs(2) as hogs, contention.pollers(3) as pollers, contention.lock_users(3) as users:
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    while fired < 300:
        contention.compute()
        contention.turn()
    for threads in (hogs, pollers, users):
        threads.await_progress()
    signal.setitimer(signal.ITIMER_REAL, 0)
""",
    )


def test_stacks_are_dumped_again_and_again(programs: "Programs") -> None:
    """The thread of faulthandler reads the other threads' stacks without the GIL."""
    gil_programs.succeed(
        programs,
        """
import faulthandler, tempfile
gil.install()
with tempfile.TemporaryFile("w+b") as dump, contention.hogs(2), contention.pollers(3) as pollers:
    faulthandler.dump_traceback_later(0.005, repeat=True, file=dump)
    while dump.tell() < 20_000:
        pollers.await_progress()
        dump.seek(0, os.SEEK_END)
    faulthandler.cancel_dump_traceback_later()
    dump.seek(0)
    assert dump.read().count(b"Timeout") > 1
""",
    )


@pytest.mark.parametrize("function", ["settrace", "setprofile"])
def test_tracing_of_all_threads(programs: "Programs", function: str) -> None:
    gil_programs.succeed(
        programs,
        f"""
gil.install()
calls = set()
def trace(frame, event, argument):
    calls.add(threading.get_ident())
    return trace
threading.{function}(trace)
sys.{function}(trace)
with contention.hogs(2), contention.pollers(2), contention.lock_users(2):
    contention.work_through()
sys.{function}(None)
threading.{function}(None)
assert len(calls) >= 7, calls
""",
    )


@pytest.mark.parametrize(("interval_s", "hogs"), [(1e-6, 1), (1e-4, 1), (2.0, 1), (1000.0, 0)])
def test_extremes_of_the_switch_interval(programs: "Programs", interval_s: float, hogs: int) -> None:
    """With an interval of 2 s the stock interpreter would not serve the others 150 times before the watchdog.

    The interval is also the slice of CPU-bound threads. With the longest interval there are no such threads: if
    a busy machine takes the processor from a thread while it holds the GIL, the thread passes for CPU-bound
    once, and would wait for the end of a slice.
    """
    gil_programs.succeed(
        programs,
        f"""
gil.install()
with contention.hogs({hogs}) as hog, contention.pollers(3) as pollers, contention.lock_users(3) as users:
    sys.setswitchinterval({interval_s})
    for threads in (pollers, users, hog):
        threads.await_progress(150)
    assert abs(sys.getswitchinterval() - {interval_s}) < 1e-9
contention.work_through()
""",
    )


def test_the_interval_changes_all_the_time(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
gil.install()
with contention.hogs(2) as hogs, contention.pollers(3) as pollers:
    for interval in (1e-6, 0.005, 1e-5, 0.1, 1e-6, 0.005):
        sys.setswitchinterval(interval)
        pollers.await_progress(10)
        hogs.await_progress(2)
""",
    )
