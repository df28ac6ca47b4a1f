"""Parties whose loop, thread or process ends, and wake-ups that are interrupted: no grant is lost.

Each test is a program of its own, under the watchdog.
"""

from __future__ import annotations

import pytest

from tests.conftest import Programs
from tests.unit.libraries import library

GRANTED_TO_A_LOOP_THAT_CLOSES = """
import asyncio, threading, unsnarl

semaphore = unsnarl.Semaphore(0)
loop = asyncio.new_event_loop()
task = loop.create_task(semaphore.async_acquire())
loop.call_soon(loop.stop)
loop.run_forever()
releaser = threading.Thread(target=semaphore.release)
releaser.start()
releaser.join()
print(semaphore.value, semaphore.waiting)
loop.close()
print(semaphore.acquire(timeout=30))
task._log_destroy_pending = False
"""


def test_a_grant_to_a_loop_that_closes_goes_to_the_next_waiter(programs: Programs) -> None:
    outcome = programs.python(programs.write("closes.py", GRANTED_TO_A_LOOP_THAT_CLOSES))
    assert (outcome.status, outcome.stdout) == (0, b"0 0\nTrue\n"), outcome.complaint


CLOSED_WHILE_AN_ERROR_IS_SET = """
import asyncio, threading, unsnarl

semaphore = unsnarl.Semaphore(0)

class Closing:
    # The end of this closes the loop, which is then dropped with everything in it.
    def __init__(self, loop):
        self.loop = loop

    def __del__(self):
        self.loop.close()

def fail():
    loop = asyncio.new_event_loop()
    task = loop.create_task(semaphore.async_acquire())
    task._log_destroy_pending = False
    loop.call_soon(loop.stop)
    loop.run_forever()
    releaser = threading.Thread(target=semaphore.release)
    releaser.start()
    releaser.join()
    closing = Closing(loop)
    raise ValueError("mine")

try:
    fail()
except ValueError as error:
    error.__traceback__ = None
    print(error)
print(semaphore.acquire(timeout=30))
"""


def test_a_loop_that_an_error_closes_leaves_the_error_alone(programs: Programs) -> None:
    outcome = programs.python(programs.write("error.py", CLOSED_WHILE_AN_ERROR_IS_SET))
    assert (outcome.status, outcome.stdout) == (0, b"mine\nTrue\n"), outcome.complaint


FORGOTTEN_WITH_A_GRANT = """
import asyncio, gc, threading, unsnarl, weakref

semaphore = unsnarl.Semaphore(0)

class Loop(asyncio.SelectorEventLoop):
    def __del__(self):
        pass  # so that only the collector drops it

def forget():
    loop = Loop()
    task = loop.create_task(semaphore.async_acquire())
    task._log_destroy_pending = False
    loop.call_soon(loop.stop)
    loop.run_forever()
    releaser = threading.Thread(target=semaphore.release)
    releaser.start()
    releaser.join()
    return weakref.ref(task)

task = forget()
gc.collect()
print(task(), semaphore.acquire(timeout=30))
"""


def test_the_collector_finds_a_loop_with_a_grant_that_it_never_saw(programs: Programs) -> None:
    outcome = programs.python(programs.write("forgotten.py", FORGOTTEN_WITH_A_GRANT))
    assert (outcome.status, outcome.stdout) == (0, b"None True\n"), outcome.complaint


# The child's own grants must not go to parties that only the parent has.
IN_A_CHILD = """
child = os.fork()
if child == 0:
    semaphore.release()
    os._exit(0 if semaphore.acquire(timeout=30) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
semaphore.release()
thread.join()
"""

GREENLET_OF_ANOTHER_THREAD = """
import gevent, os, threading, unsnarl

semaphore = unsnarl.Semaphore(0)
thread = threading.Thread(target=lambda: gevent.spawn(semaphore.acquire).join())
thread.start()
while not semaphore.waiting:
    pass
"""

TASK_OF_ANOTHER_LOOP = """
import os, threading, trio, unsnarl

semaphore = unsnarl.Semaphore(0)
thread = threading.Thread(target=lambda: trio.run(semaphore.async_acquire))
thread.start()
while not semaphore.waiting:
    pass
"""

# The thread that forks again often has the identifier of the ended one.
IN_A_GRANDCHILD = """
def again():
    child = os.fork()
    if child == 0:
        semaphore.release()
        os._exit(0 if semaphore.acquire(timeout=30) else 1)
    answers.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

child = os.fork()
if child == 0:
    answers = []
    for _ in range(3):
        grandchild = threading.Thread(target=again)
        grandchild.start()
        grandchild.join()
    os._exit(max(answers))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
semaphore.release()
thread.join()
"""

GREENLET_OF_THIS_THREAD = """
import gevent, os, unsnarl

semaphore = unsnarl.Semaphore(0)
waiter = gevent.spawn(semaphore.acquire)
gevent.sleep(0)
child = os.fork()
if child == 0:
    semaphore.release()
    os._exit(0 if waiter.get(timeout=30) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
semaphore.release()
waiter.join()
"""


FORK_IN_A_HANDLER = """
import os, signal, threading, unsnarl

{made}

def serve():
    {serve}

def handle(*_):
    global child
    child = os.fork()
    threading.Thread(target=serve).start()

def send():
    while not {waiting}:
        pass
    os.kill(os.getpid(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, handle)
threading.Thread(target=send).start()
got = {wait}
if child == 0:
    os._exit(0 if got else 1)
print(got, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FORKED_WAITS = {
    "Lock": {
        "made": "lock = unsnarl.Lock(); lock.acquire()",
        "serve": "lock.release()",
        "waiting": "lock.waiting",
        "wait": "lock.acquire(timeout=30)",
    },
    "Event": {
        "made": "event = unsnarl.Event()",
        "serve": "event.set()",
        "waiting": "event.waiting",
        "wait": "event.wait(30)",
    },
    "Queue": {
        "made": "queue = unsnarl.Queue()",
        "serve": "queue.put(True)",
        "waiting": "queue.waiting",
        "wait": "queue.get(timeout=30)",
    },
}


@pytest.mark.parametrize("name", FORKED_WAITS)
def test_a_wait_goes_on_in_the_child_that_its_signal_handler_forks(programs: Programs, name: str) -> None:
    program = programs.write("fork.py", FORK_IN_A_HANDLER.format(**FORKED_WAITS[name]))
    outcome = programs.python("-W", "ignore", program)
    assert (outcome.status, outcome.stdout) == (0, b"True 0\n"), outcome.complaint


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(GREENLET_OF_ANOTHER_THREAD + IN_A_CHILD, id="greenlet-of-another-thread", marks=library("gevent")),
        pytest.param(
            GREENLET_OF_ANOTHER_THREAD + IN_A_GRANDCHILD, id="greenlet-of-a-namesake", marks=library("gevent")
        ),
        pytest.param(TASK_OF_ANOTHER_LOOP + IN_A_CHILD, id="task", marks=library("trio")),
        pytest.param(GREENLET_OF_THIS_THREAD, id="greenlet-that-lives-on", marks=library("gevent")),
    ],
)
def test_a_forked_child_wakes_the_parties_that_live_in_it(programs: Programs, program: str) -> None:
    outcome = programs.python("-W", "ignore", programs.write("fork.py", program))
    assert (outcome.status, outcome.stdout) == (0, b"0\n"), outcome.complaint


# A handler runs as soon as the wake-up runs Python code, and raises there.
INTERRUPTED_WAKE_UP = """
import gevent, signal, sys, threading, unsnarl

semaphore = unsnarl.Semaphore(0)
served = threading.Event()
parked = threading.Event()  # set by a callback that the loop runs after the waiter was suspended
is_armed = True

def interrupt():
    global is_armed
    if is_armed:
        is_armed = False
        signal.raise_signal(signal.SIGTERM)

def leave(*_):
    raise {error}

signal.signal(signal.SIGTERM, leave)
{world}
thread = threading.Thread(target=wait)
thread.start()
parked.wait(30)
try:
    semaphore.release()
    for _ in range(100):
        pass
except {error} as error:
    print("left with", error)
print(served.wait(30))
thread.join()
"""

GEVENT_WORLD = """
from unsnarl.sync.backends.gevent import GeventParker

class Parker(GeventParker):
    def unpark(self):
        interrupt()
        super().unpark()

import unsnarl.sync.backends.gevent
unsnarl.sync.backends.gevent.GeventParker = Parker

def take():
    gevent.spawn(parked.set)
    semaphore.acquire()
    served.set()

def wait():
    gevent.spawn(take).join()
"""


@library("gevent")
@pytest.mark.parametrize("error", ["SystemExit", "TimeoutError"])
def test_an_exception_of_a_signal_handler_in_a_wake_up_is_raised_after_it(programs: Programs, error: str) -> None:
    program = programs.write("wake.py", INTERRUPTED_WAKE_UP.format(world=GEVENT_WORLD, error=error))
    outcome = programs.python(program)
    assert (outcome.status, outcome.stdout) == (0, b"left with \nTrue\n"), outcome.complaint
    assert outcome.complaint == ""
