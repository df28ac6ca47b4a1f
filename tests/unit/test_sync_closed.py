"""Tasks whose loop is closed, and coroutines that are closed outside of their task: no lock stays held.

Each test is a program of its own, under the watchdog.
"""

from __future__ import annotations

import pytest

from tests.conftest import Programs

BEGIN = """
import asyncio, gc, threading, unsnarl

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def suspended(main, is_suspended):
    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    task._log_destroy_pending = False
    while not is_suspended():
        loop.run_until_complete(asyncio.sleep(0))
    return loop, task
"""

CLOSED_WITH_A_LOCK_REGAINED = """
condition = unsnarl.Condition(unsnarl.{lock}())

async def wait():
    async with condition:
        await condition.async_wait()

def notify():
    with condition:
        condition.notify()

waiting = threading.Event()

def take():
    with condition:
        waiting.set()
        print(condition.wait(timeout=30))

loop, task = suspended(wait, lambda: condition.waiting)
thread = threading.Thread(target=take, daemon=True)
thread.start()
waiting.wait(30)
{steps}
thread.join(30)
print(condition.locked())
del task
gc.collect()
print(condition.locked())
"""


@pytest.mark.parametrize("lock", ["Lock", "RLock"])
@pytest.mark.parametrize("steps", ["in_thread(notify); loop.close()", "loop.close(); in_thread(notify)"])
def test_a_loop_that_closes_leaves_the_lock_and_the_notification_to_others(
    programs: Programs, lock: str, steps: str
) -> None:
    program = programs.write("closed.py", BEGIN + CLOSED_WITH_A_LOCK_REGAINED.format(lock=lock, steps=steps))
    outcome = programs.python(program)
    assert (outcome.status, outcome.stdout) == (0, b"True\nFalse\nFalse\n"), outcome.complaint
    assert outcome.complaint == ""


HELD_BY_A_COLLECTED_TASK = """
lock = unsnarl.{name}()
inside = []

async def hold():
    async with lock:
        inside.append(True)
        await asyncio.get_running_loop().create_future()

async def collect():
    gc.collect()

loop, task = suspended(hold, lambda: inside)
{end}
print(lock.borrowed_tokens if hasattr(lock, "borrowed_tokens") else int(lock.locked()))
"""


@pytest.mark.parametrize("name", ["Lock", "RLock", "Condition", "CapacityLimiter", "RCapacityLimiter"])
@pytest.mark.parametrize(
    "end",
    [
        pytest.param("loop.close(); del task; gc.collect()", id="collected"),
        pytest.param("loop.close(); del task; asyncio.run(collect())", id="collected-in-a-task"),
        pytest.param("task.get_coro().close()", id="closed"),
    ],
)
def test_a_lock_is_free_when_its_owners_coroutine_is_closed(programs: Programs, name: str, end: str) -> None:
    program = programs.write("held.py", BEGIN + HELD_BY_A_COLLECTED_TASK.format(name=name, end=end))
    outcome = programs.python(program)
    assert (outcome.status, outcome.stdout) == (0, b"0\n"), outcome.complaint
    assert outcome.complaint == ""


CLOSED_WHILE_ANOTHER_HOLDS = """
condition = unsnarl.Condition(unsnarl.{lock}())

async def wait():
    async with condition:
        await condition.async_wait()

loop, task = suspended(wait, lambda: condition.waiting)
with condition:
    task.get_coro().close()
    print(condition.locked())
    in_thread(lambda: print(condition.acquire(timeout=0)))
print(condition.locked())

async def again():
    async with condition:
        pass

asyncio.run(again())
print(condition.locked())
"""


@pytest.mark.parametrize("lock", ["Lock", "RLock"])
def test_a_closed_coroutine_does_not_release_a_lock_that_another_holds(programs: Programs, lock: str) -> None:
    program = programs.write("another.py", BEGIN + CLOSED_WHILE_ANOTHER_HOLDS.format(lock=lock))
    outcome = programs.python(program)
    assert (outcome.status, outcome.stdout) == (0, b"True\nFalse\nFalse\nFalse\n"), outcome.complaint
    assert outcome.complaint == ""


RELEASED_BY_OTHERS = """
lock = unsnarl.Lock()
condition = unsnarl.Condition(lock)

async def wait():
    await lock.async_acquire()
    await condition.async_wait()
    lock.async_release()

async def hold():
    async with lock:
        pass

# Closed while another task holds the lock, it releases nothing; nor does the next coroutine closed in this thread.
loop, task = suspended(wait, lambda: condition.waiting)
with lock:
    task.get_coro().close()
asyncio.run(hold())
print(lock.locked())

async def main():
    coroutine = wait()
    coroutine.send(None)
    has_lock, is_over = asyncio.Event(), asyncio.Event()

    async def hold_on():
        async with lock:
            has_lock.set()
            await is_over.wait()

    holder = asyncio.create_task(hold_on())
    await has_lock.wait()
    coroutine.close()
    is_over.set()
    await holder
    print(lock.locked())

asyncio.run(main())
"""


def test_a_closed_coroutine_that_releases_nothing_takes_no_others_release(programs: Programs) -> None:
    outcome = programs.python(programs.write("others.py", BEGIN + RELEASED_BY_OTHERS))
    assert (outcome.status, outcome.stdout) == (0, b"False\nFalse\n"), outcome.complaint
    assert outcome.complaint == ""


GENERATOR_CLOSED_IN_ANOTHER_TASK = """
lock = unsnarl.{name}()
generators = []

async def generate():
    async with lock:
        yield

async def begin():
    generators.append(generate())
    await anext(generators[-1])

async def main():
    owner = asyncio.ensure_future(begin())
    await owner
    {keep}
    await generators.pop().aclose()

asyncio.run(main())
print(lock.borrowed_tokens if hasattr(lock, "borrowed_tokens") else int(lock.locked()))
"""


@pytest.mark.parametrize("name", ["Lock", "RLock", "CapacityLimiter"])
@pytest.mark.parametrize("keep", ["pass", "owner = None"])
def test_a_generator_may_be_closed_when_the_task_that_began_it_has_ended(
    programs: Programs, name: str, keep: str
) -> None:
    program = programs.write("generator.py", BEGIN + GENERATOR_CLOSED_IN_ANOTHER_TASK.format(name=name, keep=keep))
    outcome = programs.python(program)
    assert (outcome.status, outcome.stdout) == (0, b"0\n"), outcome.complaint


OWNER_THAT_LIVES = """
lock = unsnarl.{name}()

async def release():
    try:
        await lock.__aexit__(None, None, None)
    except RuntimeError as error:
        print("RuntimeError")

async def main():
    async with lock:
        await asyncio.create_task(release())
    print(lock.borrowed_tokens if hasattr(lock, "borrowed_tokens") else int(lock.locked()))

asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["RLock", "CapacityLimiter"])
def test_a_lock_of_a_living_task_is_released_by_no_other_task(programs: Programs, name: str) -> None:
    outcome = programs.python(programs.write("lives.py", BEGIN + OWNER_THAT_LIVES.format(name=name)))
    assert (outcome.status, outcome.stdout) == (0, b"RuntimeError\n0\n"), outcome.complaint
