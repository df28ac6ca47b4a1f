"""`Once`: a call that would wait for itself raises, and nothing of it is kept.

Programs that would hang otherwise run in a process of their own, under the watchdog.
"""

from __future__ import annotations

import asyncio

import pytest

import unsnarl
from tests.conftest import Programs
from tests.unit.libraries import library

WITHIN_ITSELF = """
import asyncio, threading, unsnarl

once = unsnarl.Once()

def again():
    return once.call(again)

async def again_in_a_task():
    return await once.async_call(again_in_a_task)

async def again_in_its_thread():
    return once.call(again)

async def another_in_its_thread():
    turn = asyncio.Event()

    async def compute():
        turn.set()
        await asyncio.sleep(0)
        return "computed"

    async def call():
        await turn.wait()
        return once.call(again)

    first, second = await asyncio.gather(once.async_call(compute), call(), return_exceptions=True)
    print(first)
    raise second

def in_a_loop_of_its_own():
    return asyncio.run(once.async_call(again_in_a_task))

def tell(call):
    try:
        call()
    except RuntimeError as error:
        print(type(error).__name__, "deadlock" in str(error), once.is_done())

tell(lambda: once.call(again))
tell(lambda: asyncio.run(once.async_call(again_in_a_task)))
tell(lambda: asyncio.run(once.async_call(again_in_its_thread)))
tell(lambda: once.call(in_a_loop_of_its_own))
thread = threading.Thread(target=tell, args=(lambda: once.call(again),))
thread.start()
thread.join()
tell(lambda: asyncio.run(another_in_its_thread()))
print(once.call(again))
"""


def test_a_call_that_would_wait_for_itself_raises(programs: Programs) -> None:
    outcome = programs.python(programs.write("itself.py", WITHIN_ITSELF))
    told = b"RuntimeError True False\n" * 5 + b"computed\nRuntimeError True True\ncomputed\n"
    assert (outcome.status, outcome.stdout) == (0, told), outcome.complaint


GREENLETS = """
import gevent, unsnarl

once = unsnarl.Once()

def compute():
    try:
        once.call(compute)
    except RuntimeError as error:
        print("deadlock" in str(error))
    gevent.sleep(0)
    return "computed"

print([green.get() for green in [gevent.spawn(once.call, compute) for _ in range(3)]])
"""


@library("gevent")
def test_other_greenlets_of_the_thread_wait(programs: Programs) -> None:
    outcome = programs.python(programs.write("greenlets.py", GREENLETS))
    expected = b"True\n['computed', 'computed', 'computed']\n"
    assert (outcome.status, outcome.stdout) == (0, expected), outcome.complaint


def test_other_tasks_of_the_loop_wait() -> None:
    once = unsnarl.Once[str]()

    async def compute() -> str:
        with pytest.raises(RuntimeError, match="deadlock"):
            await once.async_call(compute)
        await asyncio.sleep(0)
        return "computed"

    async def main() -> list[str]:
        return await asyncio.gather(*(once.async_call(compute) for _ in range(3)))

    assert asyncio.run(main()) == ["computed"] * 3


def test_a_computation_that_is_closed_outside_of_its_task_does_not_count() -> None:
    once = unsnarl.Once[int]()
    loop = asyncio.new_event_loop()
    task = loop.create_task(once.async_call(loop.create_future))
    loop.run_until_complete(asyncio.sleep(0))
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    setattr(task, "_log_destroy_pending", False)  # noqa: B010 - of asyncio, and of no stub
    loop.close()
    assert once.call(lambda: 7) == 7
