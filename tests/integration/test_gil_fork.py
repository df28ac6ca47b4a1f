"""Forks under contention: the child has one thread, and a scheduler that knows it."""

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

FORK = """
import warnings
# From 3.12 on, a thread that forks while others exist warns on stderr, after the fork: the child
# of another thread may be born while the lock of that stream is held, and wait for it for ever.
warnings.simplefilter("ignore", DeprecationWarning)
def in_child(work):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            contention.guard_child()
            work()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status

def child():
    assert gil.installed()
    contention.work_through()
"""


def test_forks_from_several_threads_while_others_wait(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        FORK
        + """
gil.install()
errors = []
def fork_often():
    try:
        for _ in range(10):
            in_child(child)
    except BaseException as error:
        errors.append(error)
with contention.hogs(2) as hogs, contention.pollers(3), contention.lock_users(3) as users:
    forkers = [threading.Thread(target=fork_often) for _ in range(3)]
    for forker in forkers:
        forker.start()
    for forker in forkers:
        forker.join()
    hogs.await_progress()
    users.await_progress()
assert not errors, errors
""",
    )


def test_a_grandchild_and_its_uninstall(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        FORK
        + """
gil.install()
def grandchild():
    child()
    assert gil.uninstall()
    contention.work_through()
    gil.install()
    child()
def first_child():
    child()
    with contention.hogs(2):
        in_child(grandchild)
    child()
with contention.hogs(2), contention.pollers(2):
    in_child(first_child)
contention.work_through()
""",
    )


def test_a_fork_in_the_midst_of_installations(programs: "Programs") -> None:
    """The thread that installs does not exist in the child; the child must be able to install by itself."""
    gil_programs.succeed(
        programs,
        FORK
        + """
def toggle():
    gil.install()
    gil.uninstall()
def child_of_toggling():
    gil.install()
    child()
    assert gil.uninstall()
    contention.work_through()
    gil.install()
    child()
sys.setswitchinterval(1e-4)
with contention.Threads(1, toggle), contention.pollers(2):
    for _ in range(60):
        in_child(child_of_toggling)
""",
    )


def test_handlers_of_register_at_fork_may_use_threads(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        FORK
        + """
gil.install()
calls = []
os.register_at_fork(
    before=lambda: (contention.work_through(), calls.append("before")),
    after_in_parent=lambda: (contention.work_through(), calls.append("parent")),
    after_in_child=lambda: (contention.work_through(), calls.append("child")),
)
def check_child():
    child()
    assert calls[-1] == "child", calls
with contention.hogs(2), contention.pollers(2):
    in_child(check_child)
assert calls == ["before", "parent"], calls
""",
    )


@pytest.mark.parametrize("place", ["before", "in the parent", "in the child"])
def test_older_handlers_of_the_c_library_may_give_the_gil_up(programs: "Programs", place: str) -> None:
    """Handlers before a fork run in reverse order: an older one runs between our handlers, whichever it is.

    In the child, it would wait with the stock GIL, too, for a thread that requested the GIL before the fork.
    """
    gil_programs.succeed(
        programs,
        FORK
        + f"""
import contextlib, ctypes
calls = []
handler = ctypes.CFUNCTYPE(None)(lambda: calls.append(contention.turn()))
handlers = [handler if place == {place!r} else None for place in ("before", "in the parent", "in the child")]
assert ctypes.CDLL(None).__register_atfork(*handlers, None) == 0
gil.install()
contention.work_through()
with contention.pollers(2) if {place!r} != "in the child" else contextlib.nullcontext():
    for _ in range(10):
        in_child(child)
assert len(calls) == (0 if {place!r} == "in the child" else 10), calls
""",
    )


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing_beside_contending_threads(programs: "Programs", method: str) -> None:
    gil_programs.succeed(
        programs,
        f"""
import multiprocessing
def work(number):
    gil.install()
    contention.work_through()
    return number * number
if __name__ == "__main__":
    gil.install()
    with contention.hogs(2), contention.pollers(2):
        with multiprocessing.get_context({method!r}).Pool(3) as pool:
            assert pool.map(work, range(20)) == [number * number for number in range(20)]
    assert gil.installed()
""",
    )


def test_subprocess_with_and_without_preexec_fn(programs: "Programs") -> None:
    gil_programs.succeed(
        programs,
        """
import subprocess
gil.install()
word = [sys.executable, "-c", "print('here')"]
with contention.hogs(2), contention.pollers(2):
    for preexec_fn in (None, lambda: None, contention.turn) * 3:
        done = subprocess.run(word, preexec_fn=preexec_fn, check=True, capture_output=True)
        assert done.stdout == b"here\\n"
""",
    )


def test_threads_do_not_inherit_what_the_kernel_was_told(programs: "Programs") -> None:
    """A CPU-bound thread is SCHED_BATCH; a thread that it starts is not, unless it is CPU-bound as well.

    A thread that loses its processor while it holds the GIL passes for CPU-bound. This may
    happen to a few of the threads. An inherited hint would be seen in each, so each thread has a starter that is batch.
    """
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + """
def start_threads():
    for _ in range(5):
        become_batch()
        thread = threading.Thread(target=lambda: seen.append(os.sched_getscheduler(0)))
        thread.start()
        thread.join()
in_batch_thread(start_threads)
assert os.SCHED_OTHER in seen, seen
""",
    )


@pytest.mark.parametrize(
    "start",
    [
        # Without preexec_fn, subprocess uses vfork.
        "subprocess.run(word, check=True)",
        "os.waitpid(os.posix_spawn(word[0], word, os.environ), 0)",
        "os.waitpid(os.posix_spawnp(word[0], word, os.environ), 0)",
        "os.system(shlex.join(word))",
    ],
)
def test_programs_do_not_inherit_what_the_kernel_was_told(programs: "Programs", start: str) -> None:
    """None of these calls runs fork handlers."""
    gil_programs.succeed(
        programs,
        gil_programs.BATCH
        + f"""
import shlex, subprocess
answer = os.path.join(os.getcwd(), "answer")
word = [sys.executable, "-c", f"import os; open({{answer!r}}, 'w').write(str(os.sched_getscheduler(0)))"]
def start_program():
    {start}
    with open(answer) as file:
        seen.append(int(file.read()))
in_batch_thread(start_program)
assert seen == [os.SCHED_OTHER], seen
""",
    )
