"""What every primitive promises, on every store, for threads."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster, Hold

LIMIT_S = 30.0
"""Longer than anything here takes: what is not done by then hangs."""


def held(hold: "Hold | None") -> "Hold":
    assert hold is not None
    return hold


def started(call: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def joined(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def wait_until_waiting(primitive: Any, count: int) -> None:
    """Return once that many wait for it, in the whole cluster."""
    pause = threading.Event()
    for _ in range(3000):
        if primitive.statistics()["waiting"] == count:
            return
        pause.wait(0.01)
    raise AssertionError(f"{count} never waited")


def test_a_lock_has_one_holder(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    other = connect()
    with jobs.lock("nightly") as hold:
        hold.check()
        assert not hold.lost.is_set()
        assert 0 < hold.remaining <= 10
        assert jobs.lock("nightly").locked()
        assert other.lock("nightly").acquire(blocking=False) is None
        assert other.lock("nightly").acquire(timeout=0.05) is None
        assert jobs.lock("nightly").acquire(blocking=False) is None
    assert hold.is_released
    with other.lock("nightly") as after:
        assert after.fence > hold.fence


def test_the_fence_grows_with_every_holder(connect: Callable[[], "Cluster"]) -> None:
    connections = [connect() for _ in range(3)]
    fences: list[int] = []

    def work(cluster: "Cluster") -> None:
        for _ in range(10):
            with cluster.lock("counter") as hold:
                fences.append(hold.fence)

    joined(*(started(lambda cluster=cluster: work(cluster)) for cluster in connections))  # type: ignore[misc]
    assert len(fences) == 30
    assert fences == sorted(set(fences))


def test_waiters_are_served_in_their_order(connect: Callable[[], "Cluster"]) -> None:
    connections = [connect() for _ in range(4)]
    lock = connections[0].lock("line")
    order: list[int] = []
    threads: list[threading.Thread] = []

    def work(number: int) -> None:
        with connections[number % 4].lock("line"):
            order.append(number)

    with lock:
        for number in range(8):
            threads.append(started(lambda number=number: work(number)))  # type: ignore[misc]
            wait_until_waiting(lock, number + 1)
    joined(*threads)
    assert order == list(range(8))


def test_one_that_gives_up_leaves_the_line(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    lock, other = jobs.lock("line"), connect().lock("line")
    with lock:
        assert other.acquire(timeout=0.2) is None
        wait_until_waiting(lock, 0)
        thread = started(lambda: held(other.acquire()).release())
        wait_until_waiting(lock, 1)
    joined(thread)
    assert lock.statistics()["holders"] == 0


def test_a_timeout_of_with_is_an_exception(jobs: "Cluster") -> None:
    with jobs.lock("a"), pytest.raises(TimeoutError), jobs.lock("a", timeout=0.05):
        raise AssertionError("it was held")


def test_a_hold_is_released_once(jobs: "Cluster") -> None:
    from unsnarl.cluster import LeaseLost

    hold = held(jobs.lock("a").acquire())
    hold.release()
    with pytest.raises(LeaseLost, match="released before"):
        hold.release()
    with pytest.raises(LeaseLost, match="released"):
        hold.check()
    assert hold.lost.wait(LIMIT_S) is False


def test_one_lock_serves_several_threads(jobs: "Cluster") -> None:
    lock, inside, worst = jobs.lock("shared"), [0], [0]

    def work() -> None:
        for _ in range(5):
            with lock as hold:
                inside[0] += 1
                worst[0] = max(worst[0], inside[0])
                hold.check()
                inside[0] -= 1

    joined(*(started(work) for _ in range(6)))
    assert worst == [1]
    assert lock.statistics()["acquired"] == 30


def test_a_semaphore_has_n_holders(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    semaphore, other = jobs.semaphore("pool", 3), connect().semaphore("pool", 3)
    holds = [held(semaphore.acquire()) for _ in range(3)]
    assert semaphore.locked()
    assert other.acquire(blocking=False) is None
    got: list[Hold] = []
    threads = []
    for number in range(4):
        threads.append(started(lambda: got.append(held(other.acquire()))))
        wait_until_waiting(semaphore, number + 1)
    for hold in holds:
        hold.release()
    joined(*threads[:3])
    assert len(got) == 3
    assert min(hold.fence for hold in got) > max(hold.fence for hold in holds)
    got[0].release()
    joined(threads[3])
    for hold in got[1:]:
        hold.release()
    assert semaphore.statistics()["holders"] == 0


def test_a_semaphore_has_one_limit_at_a_time(jobs: "Cluster") -> None:
    with jobs.semaphore("pool", 2), pytest.raises(ValueError, match="limit of 2"):
        jobs.semaphore("pool", 3).acquire()
    with jobs.semaphore("pool", 3) as hold:
        hold.check()


def test_readers_share_and_writers_do_not(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    ours, other = jobs.rwlock("table"), connect().rwlock("table")
    first, second = held(ours.reader.acquire()), held(other.reader.acquire())
    assert ours.writer.acquire(blocking=False) is None
    assert not other.reader.locked()
    assert other.locked()
    written: list[int] = []
    writer = started(lambda: written.append(held(other.writer.acquire()).fence))
    wait_until_waiting(ours, 1)
    assert ours.reader.acquire(blocking=False) is None, "a reader overtook a writer that waits"
    first.release()
    assert not written
    second.release()
    joined(writer)
    assert written[0] > second.fence
    assert other.reader.locked()


def test_a_leader_leads_until_it_has_had_enough(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    leader, other = jobs.leader("boss"), connect().leader("boss")
    terms: list[int] = []
    assert leader.current() is None

    def lead(hold: "Hold") -> None:
        terms.append(hold.fence)
        row = other.current()
        assert row is not None
        assert row.fence == hold.fence
        assert other.acquire(blocking=False) is None

    leader.run(lead)
    for hold in other:
        terms.append(hold.fence)
        if len(terms) == 3:
            break
    hold.release()
    assert terms == sorted(set(terms))
    assert leader.current() is None


def test_a_coroutine_function_is_not_run_as_a_plain_one(jobs: "Cluster") -> None:
    async def callback(_hold: object) -> None:
        raise AssertionError("not to be called")

    unfit: Any = callback
    with pytest.raises(TypeError, match="async_run"):
        jobs.leader("a").run(unfit)


def test_an_event_releases_all(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    event, other = jobs.event("go"), connect().event("go")
    assert not event.is_set()
    assert event.wait(0.05) is False
    arrived: list[bool] = []
    threads = [started(lambda: arrived.append(other.wait())) for _ in range(5)]
    pause = threading.Event()
    pause.wait(0.3)  # those that come later find it set
    event.set()
    joined(*threads)
    assert arrived == [True] * 5
    assert other.is_set()
    other.clear()
    assert event.wait(0.05) is False


def pass_barrier(barrier: Any, places: list[int]) -> None:
    places.append(barrier.wait())


def test_a_barrier_is_passed_by_all_at_once(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    barriers = [connect().barrier("start", 3) for _ in range(3)]
    places: list[list[int]] = []
    for _ in range(3):
        cycle: list[int] = []
        joined(*(started(partial(pass_barrier, barrier, cycle)) for barrier in barriers))
        places.append(sorted(cycle))
    assert places == [[0, 1, 2]] * 3
    assert jobs.barrier("start", 3).n_waiting == 0


def test_a_party_that_leaves_breaks_the_barrier(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    from unsnarl.cluster import BrokenBarrierError

    barrier, other = jobs.barrier("start", 3), connect().barrier("start", 3)
    broken: list[bool] = []

    def wait() -> None:
        try:
            other.wait()
        except BrokenBarrierError:
            broken.append(True)

    thread = started(wait)
    wait_until_waiting(barrier, 1)
    with pytest.raises(BrokenBarrierError):
        barrier.wait(0.05)
    joined(thread)
    assert broken == [True]
    with pytest.raises(BrokenBarrierError):
        other.wait()
    barrier.reset()
    assert barrier.n_waiting == 0


def test_names_may_be_anything(jobs: "Cluster") -> None:
    names = ["a/b", "*", "a b", "é", "%2F", "{x}", "a\nb", "'; DROP TABLE x; --", "x" * 255]
    holds = [held(jobs.lock(name).acquire(blocking=False)) for name in names]
    assert sorted(row.name for row in jobs.list()) == sorted(names)
    for hold in holds:
        hold.release()
    assert jobs.list() == []


def test_kinds_have_names_of_their_own(jobs: "Cluster") -> None:
    with jobs.lock("a"), jobs.semaphore("a", 1), jobs.rwlock("a").writer, jobs.leader("a"):
        assert sorted(row.kind for row in jobs.list()) == ["leader", "lock", "rwlock", "semaphore"]


def test_an_operator_takes_a_lock_away(jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    from unsnarl.cluster import LeaseLost

    operator = connect()
    hold = held(jobs.lock("stuck").acquire())
    [row] = operator.list()
    assert (row.kind, row.name, row.fence, row.ticket) == ("lock", "stuck", hold.fence, hold.ticket)
    assert operator.break_("lock", "stuck") == 1
    assert hold.lost.wait(LIMIT_S)
    with pytest.raises(LeaseLost, match="operator"):
        hold.check()
    with operator.lock("stuck") as after:
        assert after.fence > hold.fence


def test_statistics_count(jobs: "Cluster") -> None:
    with jobs.lock("a"):
        pass
    jobs.event("e").set()
    counts = jobs.statistics()
    assert counts["acquired"] == counts["released"] == 1
    assert counts["requests"] >= 3
    assert counts["lost"] == 0


def test_a_closed_connection_has_given_everything_back(connect: Callable[[], "Cluster"]) -> None:
    from unsnarl.cluster import ClusterError, LeaseLost

    first, second = connect(), connect()
    hold = held(first.lock("a").acquire())
    first.close()
    with pytest.raises(LeaseLost):
        hold.check()
    with second.lock("a", timeout=LIMIT_S / 2) as after:
        assert after.fence > hold.fence
    with pytest.raises(ClusterError):
        first.lock("a").acquire()
