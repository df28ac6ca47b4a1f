"""The same objects for tasks of asyncio and trio: no polling, no thread, and cancellation leaves nothing behind."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster

trio: Any = pytest.importorskip("trio")
LIMIT_S = 30.0


def run_asyncio(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(main(), LIMIT_S)

    asyncio.run(limited())


def run_trio(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(LIMIT_S):
            await main()

    trio.run(limited)


@pytest.fixture(params=[run_asyncio, run_trio], ids=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


async def together(*calls: Callable[[], Awaitable[object]]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(call)
        return
    await asyncio.gather(*(call() for call in calls))


async def cancelled_after(seconds: float, call: Callable[[], Awaitable[object]]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with trio.move_on_after(seconds):
            await call()
        return
    try:
        await asyncio.wait_for(call(), seconds)
    except TimeoutError:
        pass


def test_tasks_take_turns(jobs: "Cluster", run: Any) -> None:
    lock, inside, fences = jobs.lock("a"), [0], []

    async def work() -> None:
        async with lock as hold:
            inside[0] += 1
            assert inside == [1]
            fences.append(hold.fence)
            inside[0] -= 1

    async def main() -> None:
        await together(*[work] * 20)

    run(main)
    assert fences == sorted(set(fences))
    assert len(fences) == 20


def test_a_task_and_a_thread_share_a_lock(jobs: "Cluster", run: Any) -> None:
    lock = jobs.lock("a")
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            may_go.wait(LIMIT_S)

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait(LIMIT_S)

    async def main() -> None:
        assert await lock.async_acquire(timeout=0.05) is None
        assert await lock.async_acquire(blocking=False) is None
        may_go.set()
        async with lock as after:
            after.check()

    run(main)
    thread.join()


def test_a_cancelled_task_leaves_the_line(jobs: "Cluster", run: Any) -> None:
    lock = jobs.lock("a")

    async def main() -> None:
        async with lock:
            await cancelled_after(0.1, lock.async_acquire)
        hold = await lock.async_acquire(timeout=LIMIT_S / 2)
        assert hold is not None
        await hold.async_release()

    run(main)
    assert jobs.list() == []
    assert jobs.statistics()["cancelled"] == 1


def test_a_task_is_told_of_a_loss(jobs: "Cluster", run: Any, connect: Callable[[], "Cluster"]) -> None:
    operator = connect()

    async def main() -> None:
        hold = await jobs.lock("a").async_acquire()
        assert hold is not None
        assert await hold.lost.async_wait(0.05) is False
        operator.break_("lock", "a")
        assert await hold.lost

    run(main)


def test_events_and_barriers_for_tasks(jobs: "Cluster", run: Any) -> None:
    event, barrier, places = jobs.event("go"), jobs.barrier("start", 3), []

    async def arrive() -> None:
        places.append(await barrier.async_wait(LIMIT_S))

    async def main() -> None:
        assert await event.async_wait(0.05) is False
        await together(event.async_set, event.async_wait)
        assert await event.async_is_set()
        await event.async_clear()
        await together(*[arrive] * 3)

    run(main)
    assert sorted(places) == [0, 1, 2]


def test_a_leader_is_an_async_iterator(jobs: "Cluster", run: Any) -> None:
    leader, terms = jobs.leader("boss"), []

    async def lead(hold: Any) -> None:
        terms.append(hold.fence)

    async def main() -> None:
        async for hold in leader:
            terms.append(hold.fence)
            if len(terms) == 2:
                break
        await hold.async_release()
        await leader.async_run(lead)

    run(main)
    assert terms == sorted(set(terms))
    assert len(terms) == 3


def test_a_thousand_tasks_wait_at_one_descriptor(jobs: "Cluster") -> None:
    event = jobs.event("go")

    async def main() -> None:
        waiting = [asyncio.create_task(event.async_wait()) for _ in range(1000)]
        await asyncio.sleep(0)
        await event.async_set()
        assert await asyncio.gather(*waiting) == [True] * 1000

    run_asyncio(main)
