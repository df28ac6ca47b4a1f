"""Timeouts follow the clock of the loop or hub that waits, which may be virtual.

No time passes in these tests: code that follows the system's clock instead would wait, or loop for ever, until the
watchdog ends it.
"""

from __future__ import annotations

from tests.conftest import Programs
from tests.unit.libraries import library

WAITS = """
import unsnarl

async def of_queue(timeout):
    try:
        return await unsnarl.Queue().async_get(timeout)
    except unsnarl.Empty:
        return False

async def of_lock(timeout):
    lock = unsnarl.Lock()
    lock.acquire()
    return await lock.async_acquire(timeout=timeout)

async def of_condition(timeout):
    condition = unsnarl.Condition()
    async with condition:
        return await condition.async_wait(timeout)

async def of_predicate(timeout):
    condition = unsnarl.Condition()
    async with condition:
        return await condition.async_wait_for(lambda: False, timeout)

async def of_barrier(timeout):
    try:
        return await unsnarl.Barrier(2).async_wait(timeout)
    except Exception as error:
        return "Broken" not in type(error).__name__

WAITS = [of_queue, of_lock, of_condition, of_predicate, of_barrier]
"""

JUMPING_BY_ITSELF = """
import trio, trio.testing

async def main():
    for wait in WAITS:
        began = trio.current_time()
        print(await wait(3000), trio.current_time() - began)

trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
"""


@library("trio")
def test_time_that_trio_skips_has_passed(programs: Programs) -> None:
    outcome = programs.python(programs.write("skipped.py", WAITS + JUMPING_BY_ITSELF))
    assert (outcome.status, outcome.stdout) == (0, b"False 3000.0\n" * 5), outcome.complaint


JUMPING = """
import trio, trio.testing

async def main():
    clock = trio.lowlevel.current_clock()
    for wait in WAITS:
        async with trio.open_nursery() as nursery:
            async def show():
                print(await wait(3000))

            nursery.start_soon(show)
            await trio.testing.wait_all_tasks_blocked()
            clock.jump(2999)
            await trio.testing.wait_all_tasks_blocked()
            print("not yet")
            clock.jump(2)

trio.run(main, clock=trio.testing.MockClock())
"""


@library("trio")
def test_time_that_a_test_has_trio_skip_has_passed(programs: Programs) -> None:
    outcome = programs.python(programs.write("jump.py", WAITS + JUMPING))
    assert (outcome.status, outcome.stdout) == (0, b"not yet\nFalse\n" * 5), outcome.complaint


WOKEN_SPURIOUSLY = """
import trio, trio.testing, unsnarl

async def main():
    queue = unsnarl.Queue()
    async with trio.open_nursery() as nursery:
        async def get():
            try:
                await queue.async_get(timeout=3000)
            except unsnarl.Empty:
                print("empty at", trio.current_time())

        nursery.start_soon(get)
        await trio.sleep(2000)
        queue.put("for nobody")
        queue.get()
        await trio.testing.wait_all_tasks_blocked()
        print("still waiting:", queue.waiting)

trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
"""


@library("trio")
def test_a_spurious_wake_up_does_not_extend_the_timeout(programs: Programs) -> None:
    outcome = programs.python(programs.write("vain.py", WOKEN_SPURIOUSLY))
    assert (outcome.status, outcome.stdout) == (0, b"still waiting: 1\nempty at 3000.0\n"), outcome.complaint


CLOCK_OF_A_LOOP = """
import asyncio

class Loop(asyncio.SelectorEventLoop):
    now = 0.0

    def time(self):
        return self.now

async def main():
    loop = asyncio.get_running_loop()
    for wait in WAITS:
        task = asyncio.ensure_future(wait(3000))
        for _ in range(5):
            await asyncio.sleep(0)
        loop.now += 2999
        for _ in range(5):
            await asyncio.sleep(0)
        print(task.done())
        loop.now += 2
        print(await task)

with asyncio.Runner(loop_factory=Loop) as runner:
    runner.run(main())
"""


def test_a_loop_of_asyncio_may_have_a_clock_of_its_own(programs: Programs) -> None:
    outcome = programs.python(programs.write("loop.py", WAITS + CLOCK_OF_A_LOOP))
    assert (outcome.status, outcome.stdout) == (0, b"False\n" * 10), outcome.complaint


CLOCK_OF_A_HUB = """
import eventlet, eventlet.hubs, unsnarl

now = 0.0
hub = eventlet.hubs.get_hub()
hub.clock = lambda: now
lock = unsnarl.Lock()
lock.acquire()
green = eventlet.spawn(lock.acquire, timeout=3000)
while not lock.waiting:
    eventlet.sleep(0)
now = 2999.0
eventlet.sleep(0)
eventlet.sleep(0)
print(lock.waiting)
now = 3001.0
print(green.wait())
"""


@library("eventlet")
def test_a_hub_of_eventlet_may_have_a_clock_of_its_own(programs: Programs) -> None:
    outcome = programs.python("-W", "ignore", programs.write("hub.py", CLOCK_OF_A_HUB))
    assert (outcome.status, outcome.stdout) == (0, b"1\nFalse\n"), outcome.complaint


LATE_TURN = """
import gevent, time, unsnarl

# The loop's own time stands still until its next turn: a timer that is set by it is early.
lock = unsnarl.Lock()
lock.acquire()
gevent.sleep(0)
turn = time.monotonic() + 0.05
while time.monotonic() < turn:
    pass
deadline = time.monotonic() + 0.05
print(lock.acquire(timeout=0.05), time.monotonic() >= deadline)
"""


@library("gevent")
def test_a_timer_of_gevent_that_is_early_does_not_shorten_a_timeout(programs: Programs) -> None:
    outcome = programs.python(programs.write("late.py", LATE_TURN))
    assert (outcome.status, outcome.stdout) == (0, b"False True\n"), outcome.complaint
