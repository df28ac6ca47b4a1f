"""Nested loops, successive loops and loops in forked children: the owner is the task that runs.

Each test is a program of its own, under the watchdog.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from importlib.util import find_spec
from typing import Any

import pytest

import unsnarl
from tests.conftest import Programs

TRIO_WITHIN_A_TASK = """
import asyncio, trio, unsnarl

lock, event = unsnarl.RLock(), unsnarl.Event()

async def inner():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(event.async_wait)
        await trio.lowlevel.checkpoint()
        event.set()
    return await lock.async_acquire(timeout=0)

async def outer():
    async with lock:
        within = trio.run(inner)
        print(within, await lock.async_acquire(timeout=0))
        lock.async_release()

asyncio.run(outer())
print(lock.locked())
"""


@pytest.mark.skipif(find_spec("trio") is None, reason="trio is not installed")
def test_a_task_of_trio_that_runs_within_one_of_asyncio_is_another_owner(programs: Programs) -> None:
    outcome = programs.python(programs.write("within.py", TRIO_WITHIN_A_TASK))
    assert (outcome.status, outcome.stdout) == (0, b"False True\nFalse\n"), outcome.complaint


GUEST = """
import asyncio, trio, unsnarl

lock = unsnarl.RLock()

async def guest():
    async with lock:
        await trio.lowlevel.checkpoint()
        return await lock.async_acquire(timeout=0)

async def host():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    async with lock:
        trio.lowlevel.start_guest_run(
            guest, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=done.set_result
        )
        turn = loop.create_future()
        loop.call_later(0, turn.set_result, None)
        await turn
        print(lock.waiting)
    print((await done).unwrap())

asyncio.run(host())
"""


@pytest.mark.skipif(find_spec("trio") is None, reason="trio is not installed")
def test_a_task_of_trio_as_the_guest_of_asyncio_waits_for_the_host(programs: Programs) -> None:
    outcome = programs.python(programs.write("guest.py", GUEST))
    lines = outcome.stdout.splitlines()
    assert (outcome.status, lines[-1:]) == (0, [b"True"]), outcome.complaint


# Trio before 0.23 does not mark its runs for sniffio's thread-local, and knows no in_trio_task().
TRIO_WITHOUT_A_MARK = """
import types, trio, trio._core._run as run

def keeping_the_mark_to_itself(code):
    names = tuple("own_mark" if name == "sniffio_library" else name for name in code.co_names)
    return code.replace(co_names=names)

run.own_mark = types.SimpleNamespace(name=None)
for function in (run.run, run.GuestState.guest_tick):
    function.__code__ = keeping_the_mark_to_itself(function.__code__)
del run.sniffio_library, trio.lowlevel.in_trio_task
"""


@pytest.mark.skipif(find_spec("trio") is None, reason="trio is not installed")
def test_trio_may_come_without_a_mark(programs: Programs) -> None:
    program = programs.write("unmarked.py", TRIO_WITHOUT_A_MARK + TRIO_WITHIN_A_TASK)
    outcome = programs.python(program)
    assert (outcome.status, outcome.stdout) == (0, b"False True\nFalse\n"), outcome.complaint


ASYNCIO_WITHIN_A_TASK = """
import asyncio, {library}, unsnarl

lock, limiter, condition = unsnarl.RLock(), unsnarl.CapacityLimiter(2), unsnarl.Condition()
inside = 0

async def inner():
    global inside
    async with lock, limiter:
        inside += 1
        await asyncio.sleep(0)
        answer = inside
        inside -= 1
    return answer

async def wait():
    async with condition:
        return await condition

async def within():
    waiting = asyncio.ensure_future(wait())
    answers = await asyncio.gather(inner(), inner(), unsnarl.Event().async_wait(timeout=0.01))
    async with condition:
        condition.notify()
    return *answers, await waiting

def in_a_callback():
    called = []

    def call():
        try:
            lock.async_acquire(timeout=0).send(None)
        except RuntimeError as error:
            called.append("no task" if "none here" in str(error) else error)

    async def main():
        asyncio.get_running_loop().call_soon(call)
        await asyncio.sleep(0)

    asyncio.run(main())
    return called

def run_it(main):
    {run}

async def outer():
    free = run_it(within())
    async with lock:
        held = run_it(lock_again())
        again = await lock.async_acquire(timeout=0)
        lock.async_release()
    print(free, held, again, in_a_callback())

async def lock_again():
    return await lock.async_acquire(timeout=0)

{library}.run(outer)
print(lock.locked(), limiter.borrowed_tokens)
"""


@pytest.mark.parametrize("library", ["trio", "curio"])
@pytest.mark.parametrize(
    ("module", "run"),
    [
        pytest.param("asyncio", "return asyncio.run(main)", id="asyncio"),
        pytest.param("uvloop", "import uvloop; return uvloop.new_event_loop().run_until_complete(main)", id="uvloop"),
    ],
)
def test_a_task_of_asyncio_that_runs_within_another_librarys_is_another_owner(
    programs: Programs, library: str, module: str, run: str
) -> None:
    for name in (library, module):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    if library == "curio" and sys.version_info >= (3, 12):
        pytest.skip("curio cannot be imported by this interpreter")
    program = programs.write("inside.py", ASYNCIO_WITHIN_A_TASK.format(library=library, run=run))
    outcome = programs.python("-W", "ignore", program)
    expected = b"(1, 1, False, True) False True ['no task']\nFalse 0\n"
    assert (outcome.status, outcome.stdout) == (0, expected), outcome.complaint


ONE_AFTER_ANOTHER = """
import asyncio, unsnarl

tasks = []

async def take(lock):
    tasks.append(asyncio.current_task())  # which stays alive, so no other object has its address
    return await lock.async_acquire(timeout=0)

async def wait(event):
    asyncio.get_running_loop().call_soon(event.set)
    return await event.async_wait(timeout=30)

answers = set()
for _ in range(20):
    lock = unsnarl.RLock()
    answers.add((asyncio.run(take(lock)), asyncio.run(take(lock)), asyncio.run(wait(unsnarl.Event()))))
print(answers)
"""


def test_a_task_of_the_next_loop_is_another_owner(programs: Programs) -> None:
    outcome = programs.python(programs.write("after.py", ONE_AFTER_ANOTHER))
    assert (outcome.status, outcome.stdout) == (0, b"{(True, False, True)}\n"), outcome.complaint


FORKED_WITHIN_A_TASK = """
import asyncio, os, unsnarl, warnings

warnings.simplefilter("ignore", DeprecationWarning)
lock = unsnarl.RLock()

async def in_child():
    event = unsnarl.Event()
    asyncio.get_running_loop().call_soon(event.set)
    # The task that holds the lock belongs to the parent, and does not run here.
    return await event.async_wait(timeout=30), await lock.async_acquire(timeout=0)

async def main():
    async with lock:
        child = os.fork()
        if child == 0:
            answers = asyncio.run(in_child())
            os._exit(0 if answers == (True, False) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), await lock.async_acquire(timeout=0))

asyncio.run(main())
"""


def test_a_loop_in_the_child_of_a_task_is_not_taken_for_the_parents(programs: Programs) -> None:
    outcome = programs.python(programs.write("forked.py", FORKED_WITHIN_A_TASK))
    assert (outcome.status, outcome.stdout) == (0, b"0 True\n"), outcome.complaint


@pytest.mark.parametrize("name", ["Lock", "RLock", "Semaphore", "CapacityLimiter"])
def test_a_loop_may_run_what_was_called_outside_of_it(name: str) -> None:
    lock = getattr(unsnarl, name)()
    assert asyncio.run(lock.async_acquire())
    assert not lock.acquire(False)  # a thread is another owner
    if name in ("Lock", "Semaphore"):
        lock.release()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        assert asyncio.run_coroutine_threadsafe(lock.async_acquire(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def test_the_owner_is_the_task_that_called_else_the_one_that_takes_the_first_step() -> None:
    lock = unsnarl.RLock()

    async def main(called_outside: Any) -> list[int]:
        depths = [lock._async_depth()]
        await called_outside
        depths.append(lock._async_depth())
        await asyncio.create_task(lock.async_acquire())  # as wait_for of CPython 3.11 does
        depths.append(lock._async_depth())
        lock.async_release()
        lock.async_release()
        return depths

    assert asyncio.run(main(lock.async_acquire())) == [0, 1, 2]
    assert not lock.locked()


def test_a_call_that_no_task_awaits_has_no_owner() -> None:
    with pytest.raises(RuntimeError, match="none here"):
        unsnarl.RLock().async_acquire().send(None)
