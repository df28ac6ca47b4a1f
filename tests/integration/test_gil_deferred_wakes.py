"""A contended lock's waiter is woken when the releaser drops the GIL, or soon after if it keeps the GIL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import gil_programs

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

CONTEND = """
gil.install()
def contend(lock, threads, rounds):
    total = 0
    def work():
        nonlocal total
        for _ in range(rounds):
            with lock:
                seen = total
                os.stat("/")  # another thread may run here
                total = seen + 1
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return total
"""


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Condition"])
@pytest.mark.parametrize("threads", [2, 3, 20])
def test_a_contended_lock_excludes_and_everybody_gets_it(programs: Programs, kind: str, threads: int) -> None:
    printed = gil_programs.succeed(programs, CONTEND + f"print(contend(threading.{kind}(), {threads}, 1000))")
    assert int(printed) == threads * 1000


def test_a_releaser_that_computes_on_delays_nobody_for_good(programs: Programs) -> None:
    """The main thread never drops the GIL of its own accord, and only a waiter of the lock can end its loop."""
    gil_programs.succeed(
        programs,
        CONTEND
        + """
sys.setswitchinterval(1000)
for _ in range(30):
    lock, acquired = threading.Lock(), []
    contend(lock, 3, 50)  # the lock is in heavy use, so a waiter watches
    def wait():
        with lock:
            acquired.append(1)
    lock.acquire()
    waiters = [threading.Thread(target=wait) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    contention.block()
    for _ in range(100):
        lock.release()
        lock.acquire()
    lock.release()
    while not acquired:
        pass
    for waiter in waiters:
        waiter.join()
""",
    )


def test_a_fork_between_a_release_and_the_drop(programs: Programs) -> None:
    gil_programs.succeed(
        programs,
        CONTEND
        + """
for _ in range(20):
    lock = threading.Lock()
    go = threading.Event()
    def wait():
        for _ in range(200):
            with lock:
                os.stat("/")
    waiters = [threading.Thread(target=wait) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    with lock:
        pass
    child = os.fork()
    if not child:
        assert contend(threading.Lock(), 3, 20) == 60
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for waiter in waiters:
        waiter.join()
""",
    )


def test_an_uninstall_pays_what_is_owed(programs: Programs) -> None:
    gil_programs.succeed(
        programs,
        CONTEND
        + """
for _ in range(50):
    lock = threading.Lock()
    def work():
        for _ in range(100):
            with lock:
                os.stat("/")
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(10):
        with lock:
            pass
        gil.uninstall()
        gil.install()
    for worker in workers:
        worker.join()
""",
    )
