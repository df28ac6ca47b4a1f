"""Wake-ups of greenlets and tasks from other threads: in forked children, and after the end of a hub, run or thread.

Each test is a program of its own, under the watchdog.
"""

from __future__ import annotations

import pytest

from tests.conftest import Programs
from tests.unit.libraries import library

# The parent's hub runs meanwhile: a wake-up for the child must not arrive there.
FORKED = """
import os, {library}, unsnarl
{imports}

def released_from_a_thread():
    lock = unsnarl.Lock()
    lock.acquire()

    def release():
        while not lock.waiting:
            pass
        lock.release()

    answers = []
    green = {library}.spawn(lambda: answers.append(lock.acquire(timeout=30)))
    thread = threading.Thread(target=release)
    thread.start()
    while not answers:
        {library}.sleep(0.001)
    thread.join()
    return answers[0]

print(released_from_a_thread())
child = {fork}
if child == 0:
    {before}
    os._exit(0 if released_from_a_thread() and released_from_a_thread() else 1)
while True:
    {library}.sleep(0)
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        break
print(os.waitstatus_to_exitcode(status), released_from_a_thread())
"""

OF_EVENTLET = """
from eventlet import hubs
from eventlet.patcher import original
threading = original("threading")
"""


@pytest.mark.parametrize(
    ("name", "imports", "fork", "before"),
    [
        pytest.param("eventlet", OF_EVENTLET, "os.fork()", "pass", id="eventlet", marks=library("eventlet")),
        pytest.param(
            "eventlet", OF_EVENTLET, "os.fork()", "hubs.use_hub()", id="eventlet-new-hub", marks=library("eventlet")
        ),
        pytest.param("gevent", "import threading", "gevent.fork()", "pass", id="gevent", marks=library("gevent")),
        pytest.param(
            "gevent", "import threading", "os.fork()", "gevent.reinit()", id="gevent-reinit", marks=library("gevent")
        ),
    ],
)
def test_a_thread_of_a_forked_child_wakes_its_greenlets(
    programs: Programs, name: str, imports: str, fork: str, before: str
) -> None:
    text = FORKED.format(library=name, imports=imports, fork=fork, before=before)
    outcome = programs.python("-W", "ignore", programs.write("fork.py", text))
    assert (outcome.status, outcome.stdout) == (0, b"True\n0 True\n"), outcome.complaint


IDLE_HUB = """
import eventlet, unsnarl
from eventlet import hubs
from eventlet.patcher import original
threading = original("threading")

hub = hubs.get_hub()
lock, event, queue = unsnarl.Lock(), unsnarl.Event(), unsnarl.Queue()
waited_for = (lock, event, queue)
listening = []

def wake():
    while not all(each.waiting for each in waited_for):
        pass
    listening.append(len(hub.get_readers()))
    event.set()
    queue.put(1)
    lock.release()

for _ in range(2):
    lock.acquire()
    event.clear()
    thread = threading.Thread(target=wake)
    greens = [eventlet.spawn(wait) for wait in (lock.acquire, event.wait, queue.get)]
    greens.append(eventlet.spawn(unsnarl.Event().wait, 0.001))
    thread.start()
    for green in greens[:3]:
        print(bool(green.wait()), end=" ")
    print(greens[3].wait(), end=" ")
    thread.join()
    lock.release()
    print(listening.pop(), len(hub.get_readers()))

killed = eventlet.spawn(unsnarl.Event().wait)
eventlet.sleep(0)
print(len(hub.get_readers()), end=" ")
killed.kill()
print(len(hub.get_readers()))
"""


@library("eventlet")
def test_a_hub_without_waiting_greenlets_has_no_listener_of_ours(programs: Programs) -> None:
    outcome = programs.python("-W", "ignore", programs.write("idle.py", IDLE_HUB))
    rounds = b"True True True False 1 0\n" * 2
    assert (outcome.status, outcome.stdout) == (0, rounds + b"1 0\n"), outcome.complaint


WOKEN_AFTER_THE_RUN = """
import trio
from unsnarl.sync.backends.trio import parker

async def main():
    return parker()

trio.run(main).unpark()
"""


@library("trio")
def test_waking_a_task_whose_run_has_ended_does_nothing(programs: Programs) -> None:
    outcome = programs.python(programs.write("ended.py", WOKEN_AFTER_THE_RUN))
    assert (outcome.status, outcome.complaint) == (0, "")


GREENLET_OF_A_THREAD_THAT_HAS_ENDED = """
import threading, {library}, unsnarl
{imports}

semaphore, turns = unsnarl.Semaphore(0), unsnarl.Queue()
condition, event, queue = unsnarl.Condition(), unsnarl.Event(), unsnarl.Queue()
told = unsnarl.Queue()
lock = unsnarl.RWLock()
lock.reader.acquire()

def wait_for_a_notification():
    with condition:
        condition.wait()

def leave():
    for wait in (semaphore.acquire, event.wait, queue.get, told.get, lock.writer.acquire, wait_for_a_notification):
        {library}.spawn(wait)
    waited_for = (semaphore, event, queue, told, lock, condition)
    while not all(each.waiting for each in waited_for):
        {library}.sleep(0)
    others = [threading.Thread(target=lambda: turns.put(told.get())) for _ in range(2)]
    for number, other in enumerate(others):
        other.start()
        while told.waiting < 2 + number:
            pass
    told.put(1)  # the greenlet is notified, and will never re-check
    {end}

thread = threading.Thread(target=leave)
thread.start()
thread.join()
told.put(2)
print(turns.get(timeout=30) + turns.get(timeout=30))
lock.reader.release()
print(lock.writer.waiting, lock.reader.waiting)
semaphore.release()
print(semaphore.acquire(timeout=30))
queue.put(1)
print(queue.get(timeout=30))
event.set()
with condition:
    condition.notify()
print(condition.acquire(timeout=30))
"""


@pytest.mark.parametrize(
    ("name", "imports", "end"),
    [
        pytest.param("gevent", "", "pass", id="gevent", marks=library("gevent")),
        pytest.param("gevent", "", "gevent.get_hub().destroy()", id="gevent-destroyed", marks=library("gevent")),
        pytest.param("eventlet", OF_EVENTLET, "pass", id="eventlet", marks=library("eventlet")),
    ],
)
def test_a_greenlet_of_an_ended_thread_is_granted_nothing(
    programs: Programs, name: str, imports: str, end: str
) -> None:
    text = GREENLET_OF_A_THREAD_THAT_HAS_ENDED.format(library=name, imports=imports, end=end)
    outcome = programs.python("-W", "ignore", programs.write("left.py", text))
    assert (outcome.status, outcome.stdout) == (0, b"3\n0 0\nTrue\n1\nTrue\n"), outcome.complaint
    assert outcome.complaint == ""
