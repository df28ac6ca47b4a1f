"""The interpreter ends with its exit status, whichever hooks its threads are in."""

import signal
from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

ENDINGS = {
    "the last line": ("", 0),
    "sys.exit": ("sys.exit(7)", 7),
    "an exception": ("raise RuntimeError('the end')", 1),
    "os._exit": ("os._exit(9)", 9),
    "SIGTERM": ("os.kill(os.getpid(), 15); contention.hogs(1).__enter__().await_progress(10**9)", -signal.SIGTERM),
}
REPEATS = 5
"""In each run, other threads are in other states at the end."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_daemon_threads_in_the_hooks_at_the_end(programs: "Programs", ending: str) -> None:
    line, status = ENDINGS[ending]
    for _ in range(REPEATS):
        outcome = gil_programs.start(
            programs,
            f"""
gil.install()
threads = [contention.hogs(3), contention.pollers(3), contention.lock_users(3)]
for each in threads:
    each.__enter__()
{line}
""",
        )
        assert outcome.status == status, outcome.complaint
        assert b"Fatal" not in outcome.stderr, outcome.complaint


@pytest.mark.parametrize("scheduled", [False, True], ids=["stock", "scheduled"])
@pytest.mark.parametrize(
    ("make", "wait", "release"), [("Barrier(2)", "wait()", "wait()"), ("Queue()", "get()", "put(1)")]
)
def test_daemon_threads_that_come_from_a_primitive_at_the_end(
    programs: "Programs", make: str, wait: str, release: str, *, scheduled: bool
) -> None:
    """Before 3.14 the interpreter ends the threads inside of unsnarl's code, when they request the GIL again."""
    for _ in range(REPEATS):
        gil_programs.succeed(
            programs,
            f"""
import unsnarl
if {scheduled}:
    gil.install()
it = unsnarl.{make}
def work():
    while True:
        it.{wait}
threading.Thread(target=work, daemon=True).start()
for _ in range(20):
    it.{release}
""",
        )


def test_a_daemon_thread_that_installs_at_the_end(programs: "Programs") -> None:
    """The installing thread releases the GIL and never gets it again; the ending thread does not wait for it."""
    for _ in range(REPEATS):
        outcome = gil_programs.start(
            programs,
            """
from unsnarl import _native
begun = threading.Event()
def toggle():
    begun.set()
    while True:
        gil.install()
        gil.uninstall()
threading.Thread(target=toggle, daemon=True).start()
class Last:
    # At that time all names of modules have been removed, those of built-in functions as well.
    def __del__(
        self, sleep=time.sleep, write=os.write, rounds=range(100),
        install=_native.install, uninstall=_native.uninstall, refused=_native.Unsupported,
    ):
        for _ in rounds:
            sleep(0)
        uninstall()
        try:
            install(5_000_000, 200, True)
        except refused as error:
            write(1, error.args[0].encode())
begun.wait()
sys.last = Last()
""",
        )
        assert outcome.status == 0, (outcome.status, outcome.complaint)
        assert b"is ending" in outcome.stdout, outcome


def test_daemon_threads_that_left_at_the_end_are_not_waited_for(programs: "Programs") -> None:
    """The interpreter ends or hangs the threads when they request the GIL: they do not stay in the queue."""
    printed = gil_programs.succeed(
        programs,
        """
from unsnarl import _native
gil.install(slice_ms=0.1)
class Last:
    def __del__(self, sleep=time.sleep, write=os.write, stats=_native.stats, rounds=range(1000), hold=sum):
        for _ in rounds:
            hold(rounds)
            hold(rounds)
            for _ in rounds:
                pass
            sleep(0)
        for _ in rounds:
            if stats()["waiting"]:
                sleep(0.001)
        write(1, b"%d" % stats()["waiting"])
contention.pollers(20).__enter__()
sys.last = Last()
""",
    )
    assert printed == "0"


def test_threads_that_outlive_the_main_thread_finish_their_work(programs: "Programs") -> None:
    printed = gil_programs.succeed(
        programs,
        """
gil.install()
def work(number):
    for _ in range(200):
        contention.compute()
        contention.turn()
    print(number)
for number in range(6):
    threading.Thread(target=work, args=(number,)).start()
contention.hogs(2).__enter__()
""",
    )
    assert sorted(map(int, printed.split())) == list(range(6))


def test_atexit_with_threads_and_an_uninstall(programs: "Programs") -> None:
    """A late atexit function can use locks while daemon threads run."""
    for uninstall in ("pass", "gil.uninstall()"):
        printed = gil_programs.succeed(
            programs,
            f"""
import atexit
gil.install()
lock = threading.Lock()
def late():
    {uninstall}
    for _ in range(100):
        with lock:
            contention.turn()
    print("late")
atexit.register(late)
contention.hogs(2).__enter__()
contention.pollers(3).__enter__()
""",
        )
        assert printed == "late\n"


def test_sys_exit_in_a_thread_ends_that_thread_alone(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
gil.install()
with contention.hogs(2):
    threads = [threading.Thread(target=sys.exit, args=(3,)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""",
    )


def test_statistics_are_to_be_had_to_the_last(programs: "Programs") -> None:
    printed = gil_programs.succeed(
        programs,
        """
import atexit
gil.install()
atexit.register(lambda: print(gil.stats().hand_overs > 0))
contention.hogs(2).__enter__()
""",
    )
    assert printed == "True\n"
