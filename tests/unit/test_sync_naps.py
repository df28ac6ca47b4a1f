"""Naps: on a single processor a wake-up may come late, but comes, and two threads in ping-pong sleep once a turn.

Each test is a program of its own, under the watchdog.
"""

from __future__ import annotations

import pytest

from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

BEGIN = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before unsnarl counts the processors
import resource, threading, unsnarl

one, other = unsnarl.Lock(), unsnarl.Lock()
other.acquire()

def together(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def first(rounds):
    for _ in range(rounds):
        one.acquire()
        other.release()

def second(rounds):
    for _ in range(rounds):
        other.acquire()
        one.release()

def switches():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_nvcsw + usage.ru_nivcsw
"""

PING_PONG = """
rounds = 5000
before = switches()
together(lambda: first(rounds), lambda: second(rounds))
print((switches() - before) / rounds)
"""


def test_two_threads_in_ping_pong_on_one_processor_sleep_once_a_turn(programs: Programs) -> None:
    """Without naps there are some six context switches a round trip on Linux 6.18: a woken thread runs at once."""
    outcome = programs.python(programs.write("ping.py", BEGIN + PING_PONG))
    assert outcome.status == 0, outcome.complaint
    assert float(outcome.stdout) < 3.5


# By then each thread naps; the last wake-up is owed by a thread that waits for nothing of unsnarl's any more.
LEFT_OWED = """
reader, writer = os.pipe()
ended = threading.Event()

def wake_and_leave():
    first(100)
    one.acquire()
    other.release()
    {leave}

def answer():
    second(100)
    other.acquire()
    os.write(writer, b"x")
    ended.set()

for _ in range(20):
    together(wake_and_leave, answer)
    one.release()
    ended.clear()
print("answered")
"""


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param("os.read(reader, 1)", id="into-the-kernel"),
        pytest.param("ended.wait()", id="into-a-lock-of-the-standard-library"),
        pytest.param("sum(range(1000))", id="for-good"),
        pytest.param("while not ended.is_set(): pass", id="into-a-computation"),
    ],
)
def test_a_wake_up_that_is_owed_for_good_comes_by_itself(programs: Programs, leave: str) -> None:
    outcome = programs.python(programs.write("owed.py", BEGIN + LEFT_OWED.format(leave=leave)))
    assert (outcome.status, outcome.stdout) == (0, b"answered\n"), outcome.complaint
