"""Parties that are not in the way: another greenlet's loop, and a borrower that a fork has left behind.

Each test is a program of its own, under the watchdog.
"""

from __future__ import annotations

from tests.conftest import Programs
from tests.unit.libraries import library

LEFT_BEHIND = """
import os, threading, unsnarl, warnings

warnings.simplefilter("ignore", DeprecationWarning)
limiter = unsnarl.CapacityLimiter(1)
limiter.acquire()
waiter = threading.Thread(target=limiter.acquire, daemon=True)
waiter.start()
while not limiter.waiting:
    pass
child = os.fork()
if child == 0:
    numbers = []
    def borrow():
        numbers.append(threading.get_ident())
        with limiter:
            pass
    limiter.release()
    thread = threading.Thread(target=borrow)
    thread.start()
    thread.join()
    print(len(numbers), limiter.borrowed_tokens, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_borrower_that_a_fork_left_behind_is_not_taken_for_another(programs: Programs) -> None:
    """Many C libraries give the child's first thread the number of one that the fork has ended."""
    outcome = programs.python(programs.write("left.py", LEFT_BEHIND))
    assert (outcome.status, outcome.stdout, outcome.complaint) == (0, b"1 0\n", "")


ANOTHER_GREENLET = """
from gevent import monkey
monkey.patch_all()
import asyncio, threading, time, unsnarl

lock, held = unsnarl.Lock(), threading.Event()

async def hold():
    async with lock:
        held.set()
        time.sleep(0.01)

loop = threading.Thread(target=asyncio.run, args=(hold(),))
loop.start()
held.wait()
with lock:
    print("after it")
loop.join()
"""


@library("gevent")
def test_a_loop_in_another_greenlet_is_no_deadlock(programs: Programs) -> None:
    outcome = programs.python(programs.write("another.py", ANOTHER_GREENLET))
    assert (outcome.status, outcome.stdout, outcome.complaint) == (0, b"after it\n", "")
