"""The promises of every primitive, played in every world.

Run as a module with the name of a world (and perhaps `--gil`, to have the scheduler in) it plays every scenario and
prints `ok N`. Libraries patch modules and start threads, so each world gets a separate interpreter.

Invariants: a scenario asserts states and orders, never times; one that hangs dumps the stacks of all threads and
ends.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import tests.contract.batch_scenarios
import tests.contract.mixed_scenarios
import tests.contract.ownership_scenarios  # noqa: F401 - the scenarios of all three are played too
import unsnarl
from tests.contract.playbook import LOCKS_AND_SIDES, SCENARIOS, scenario
from tests.contract.worlds import LIBRARIES, WORLDS

# --- asynchronous worlds


@scenario
async def async_exclusion(world: Any) -> None:
    """No two parties are ever inside together, and every party gets in."""
    for make in LOCKS_AND_SIDES:
        lock = make()
        inside = 0
        entered = 0

        async def party() -> None:
            nonlocal inside, entered
            for _ in range(10):
                async with lock:
                    inside += 1
                    assert inside == 1
                    await world.wait_until_idle()
                    entered += 1
                    inside -= 1

        await world.together(party, party, party)
        assert entered == 30


@scenario
async def async_first_come_first_served(world: Any) -> None:
    for make in LOCKS_AND_SIDES:
        lock = make()
        order: list[int] = []
        gate = unsnarl.Event()

        async def holder() -> None:
            async with lock:
                await gate

        async def wait(number: int) -> None:
            await idle_times(world, number + 1)
            async with lock:
                order.append(number)

        async def opener() -> None:
            await idle_times(world, 20)
            gate.set()

        await world.together(holder, *(partial(wait, number) for number in range(3)), opener)
        assert sorted(order) == [0, 1, 2]
        if world.starts_in_order:
            assert order == [0, 1, 2], (make, order)


@scenario
async def async_cancelled_waiter_loses_nothing(world: Any) -> None:
    for make in LOCKS_AND_SIDES:
        lock = make()

        async def wait() -> None:
            async with lock:
                raise AssertionError("the lock was held")

        async def hold_and_cancel() -> None:
            async with lock:
                await world.cancelled(wait)

        await hold_and_cancel()
        assert await lock.async_acquire(timeout=0)
        await maybe(lock.async_release())
        assert not getattr(lock, "waiting", 0)


async def idle_times(world: Any, times: int) -> None:
    for _ in range(times):
        await world.wait_until_idle()


async def maybe(result: Any) -> None:
    if result is not None:
        await result


@scenario
async def async_timeout_answers_false(world: Any) -> None:
    for make in LOCKS_AND_SIDES:
        lock = make()

        async def wait() -> None:
            assert await lock.async_acquire(timeout=0) is False
            assert await lock.async_acquire(timeout=0.01) is False

        async with lock:
            await world.together(wait)
    assert await unsnarl.Event().async_wait(timeout=0.01) is False
    assert await unsnarl.CountdownEvent(1).async_wait(timeout=0.01) is False
    queue: unsnarl.Queue[Any] = unsnarl.Queue(1)
    try:
        await queue.async_get(timeout=0.01)
    except unsnarl.Empty:
        pass
    else:
        raise AssertionError("no Empty")
    await queue.async_put(1)
    try:
        await queue.async_put(2, timeout=0.01)
    except unsnarl.Full:
        pass
    else:
        raise AssertionError("no Full")


@scenario
async def async_event_wakes_every_waiter(world: Any) -> None:
    for event, name in [
        (unsnarl.Event(), "set"),
        (unsnarl.CountdownEvent(1), "down"),
        (unsnarl.Latch(1), "count_down"),
    ]:
        release = getattr(event, name)
        woken: list[bool] = []

        async def wait(event: Any = event, woken: Any = woken) -> None:
            woken.append(await event.async_wait())

        async def go(release: Any = release) -> None:
            await world.wait_until_idle()
            release()

        await world.together(wait, wait, wait, go)
        assert woken == [True, True, True]


@scenario
async def async_condition_hands_over(world: Any) -> None:
    for lock in (unsnarl.RLock(), unsnarl.Lock()):
        condition = unsnarl.Condition(lock)
        turn = 0

        def player(number: int, condition: Any = condition) -> Any:
            async def play() -> None:
                nonlocal turn
                for _ in range(20):
                    async with condition:
                        await condition.async_wait_for(lambda: turn == number)
                        turn = 1 - number
                        condition.notify()

            return play

        await world.together(player(0), player(1))
        async with condition:
            assert await condition.async_wait(timeout=0.01) is False
            assert lock.locked()

        async def wait(condition: Any = condition) -> None:
            async with condition:
                await condition.async_wait()

        await world.cancelled(wait)
        assert not lock.locked()
        assert condition.waiting == 0


@scenario
async def async_barrier_meets(world: Any) -> None:
    actions: list[str] = []
    barrier = unsnarl.Barrier(3, action=lambda: actions.append("met"))
    indices: list[int] = []

    async def party() -> None:
        indices.extend([await barrier.async_wait() for _ in range(5)])

    await world.together(party, party, party)
    assert sorted(indices) == [0] * 5 + [1] * 5 + [2] * 5
    assert actions == ["met"] * 5
    await world.cancelled(barrier.async_wait)
    assert (barrier.broken, barrier.n_waiting) == (False, 0)
    await world.together(party, party, party)


@scenario
async def async_queue_keeps_order(world: Any) -> None:
    kinds: list[Callable[[int], Any]] = [unsnarl.Queue, unsnarl.PriorityQueue]
    for make in kinds:
        queue = make(2)
        got: list[int] = []

        async def produce(queue: Any = queue) -> None:
            for number in range(50):
                await queue.async_put(number)
            queue.shutdown()

        async def consume(queue: Any = queue, got: Any = got) -> None:
            async for number in queue:
                got.append(number)
                queue.task_done()

        await world.together(produce, consume)
        assert got == list(range(50))
        await queue.async_join()


@scenario
async def async_queue_loses_nothing_on_cancel(world: Any) -> None:
    queue: unsnarl.Queue[Any] = unsnarl.Queue(1)
    await world.cancelled(queue.async_get)
    assert queue.waiting == 0
    await queue.async_put("first")

    async def put() -> None:
        await queue.async_put("second")

    await world.cancelled(put)
    assert queue.waiting == 0
    assert await queue.async_get() == "first"
    assert queue.empty()


@scenario
async def async_with_threads(world: Any) -> None:
    """A thread and a task on the same objects."""
    there: unsnarl.Queue[int] = unsnarl.Queue(3)
    back: unsnarl.Queue[int] = unsnarl.Queue(3)
    lock = unsnarl.Lock()
    total = 0

    def work() -> None:
        nonlocal total
        for number in there:
            with lock:
                total += number
            back.put(number)
        back.shutdown()

    thread = threading.Thread(target=work)
    thread.start()

    async def produce() -> None:
        for number in range(200):
            await there.async_put(number)
            async with lock:
                pass
        there.shutdown()

    got: list[int] = []

    async def consume() -> None:
        got.extend([number async for number in back])

    await world.together(produce, consume)
    thread.join(60)
    assert got == list(range(200))
    assert total == sum(range(200))


# --- synchronous worlds


@scenario
def sync_exclusion(world: Any) -> None:
    for make in LOCKS_AND_SIDES:
        lock = make()
        inside = 0
        entered = 0

        def party(lock: Any = lock) -> None:
            nonlocal inside, entered
            for _ in range(50):
                with lock:
                    inside += 1
                    assert inside == 1
                    unsnarl.Event().wait(0.0001)
                    entered += 1
                    inside -= 1

        world.together(party, party, party)
        assert entered == 150


@scenario
def sync_events(world: Any) -> None:
    event, latch, woken = unsnarl.Event(), unsnarl.Latch(2), []

    def wait() -> None:
        latch.count_down()
        woken.append(event.wait())

    def go() -> None:
        assert latch.wait()
        event.set()

    world.together(wait, wait, go)
    assert woken == [True, True]
    assert unsnarl.Event().wait(0.001) is False


@scenario
def sync_condition(world: Any) -> None:
    condition = unsnarl.Condition()
    turn = 0

    def player(number: int) -> Any:
        def play() -> None:
            nonlocal turn
            for _ in range(50):
                with condition:
                    condition.wait_for(lambda: turn == number)
                    turn = 1 - number
                    condition.notify()

        return play

    world.together(player(0), player(1))
    with condition:
        assert condition.wait(0.001) is False


@scenario
def sync_barrier(world: Any) -> None:
    barrier = unsnarl.Barrier(3)
    indices: list[int] = []

    def party() -> None:
        indices.extend([barrier.wait() for _ in range(20)])

    world.together(party, party, party)
    assert sorted(indices) == [0] * 20 + [1] * 20 + [2] * 20


@scenario
def sync_queue(world: Any) -> None:
    kinds: list[Callable[[int], Any]] = [unsnarl.Queue, unsnarl.LifoQueue, unsnarl.PriorityQueue]
    for make in kinds:
        queue = make(5)
        got: list[int] = []

        def produce(queue: Any = queue) -> None:
            for number in range(200):
                queue.put(number)

        def consume(queue: Any = queue, got: Any = got) -> None:
            for number in queue:
                got.append(number)
                queue.task_done()

        def finish(queue: Any = queue, produce: Any = produce) -> None:
            produce()
            queue.join()
            queue.shutdown()

        world.together(finish, consume, consume)
        assert sorted(got) == list(range(200))


@scenario
def sync_with_other_threads(world: Any) -> None:
    """The world's parties and a plain thread on one queue."""
    there: unsnarl.Queue[int] = unsnarl.Queue(3)
    back: unsnarl.Queue[int] = unsnarl.Queue(3)

    def work() -> None:
        for number in there:
            back.put(number)
        back.shutdown()

    thread = threading.Thread(target=work)
    thread.start()
    got: list[int] = []

    def produce() -> None:
        for number in range(200):
            there.put(number)
        there.shutdown()

    world.together(produce, lambda: got.extend(back))
    thread.join(60)
    assert got == list(range(200))


WATCHDOG_S = 240.0
"""Shorter than the process's timeout in the tests, so that the stacks are seen."""


def main() -> None:
    name = sys.argv[1]
    faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)
    if "--gil" in sys.argv:
        unsnarl.gil.install()
    for library in LIBRARIES.get(name, (name,)):
        __import__(library)
    world: Any = WORLDS[name]()
    played = 0
    for play in SCENARIOS:
        if play.__name__.startswith("async_") == world.is_async:
            if "-v" in sys.argv:
                print(play.__name__, flush=True)
            world.run(play)
            played += 1
    print("ok", played)


if __name__ == "__main__":
    main()
