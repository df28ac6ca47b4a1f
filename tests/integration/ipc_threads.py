"""Threads of one process use the same object at the same time, through two handles of one name: nothing is lost.

    python ipc_threads.py SCENARIO [ROUNDS]

Without a GIL their attempts overlap at every instruction. A watchdog ends the program with
all tracebacks. Invariant: what a scenario checks holds for any interleaving.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from unsnarl import ipc

CREW = 4
NAME = f"threads-{os.getpid()}-{os.urandom(4).hex()}"
WATCHDOG_S = 100.0


def run(*bodies: Callable[[], object]) -> None:
    """Run the bodies in threads that begin together; raise the first error of any."""
    errors: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
    gate = threading.Barrier(len(bodies))

    def guarded(body: Callable[[], object]) -> None:
        gate.wait()
        try:
            body()
        except BaseException as error:  # noqa: BLE001 - raised in the main thread
            errors.put(error)

    threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and errors.empty():
            thread.join(0.05)
    if not errors.empty():
        raise errors.get()


@contextlib.contextmanager
def handles(make: Callable[[str], Any]) -> Iterator[list[Any]]:
    """Give every thread of the crew a handle: two objects of one name, in turns."""
    pair = [make(NAME) for _ in range(2)]
    try:
        yield [pair[number % 2] for number in range(CREW)]
    finally:
        for primitive in pair:
            primitive.close()


def in_killed_child(body: Callable[[], object]) -> None:
    """Run the body in a forked child that is then killed."""
    child = os.fork()
    if child == 0:
        body()
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, status


def deaths_are_noticed(locks: list[Any]) -> None:
    """Let a thread end with each lock: the kernel has to find all of them in its list."""
    run(lambda: [lock.acquire() for lock in locks])
    for lock in locks:
        try:
            lock.acquire()
        except ipc.OwnerDied:
            lock.make_consistent()
            lock.release()
        else:
            raise AssertionError("a thread ended with the lock, and its death was not reported")


def lock(rounds: int, kind: Any = ipc.Lock) -> None:
    """Count under a lock."""
    counter = [0]

    def count(lock: Any) -> None:
        for _ in range(rounds):
            with lock:
                counter[0] += 1

    with handles(kind) as locks:
        run(*(lambda lock=lock: count(lock) for lock in locks))
        assert counter[0] == rounds * CREW, counter
        deaths_are_noticed(locks[:1])


def rlock(rounds: int) -> None:
    """Count under a lock that is taken twice."""
    lock(rounds, ipc.RLock)
    counter = [0]

    def count(lock: Any) -> None:
        for _ in range(rounds):
            with lock, lock:
                counter[0] += 1

    with handles(ipc.RLock) as locks:
        run(*(lambda lock=lock: count(lock) for lock in locks))
    assert counter[0] == rounds * CREW, counter


def baton(rounds: int) -> None:
    """Release in one thread what another takes, so that entries stay behind in lists."""
    counter = [0]
    hands: queue.SimpleQueue[Any] = queue.SimpleQueue()
    is_over = threading.Barrier(2 * CREW)

    def take(lock: Any) -> None:
        for _ in range(rounds):
            lock.acquire()
            counter[0] += 1
            hands.put(lock)
        # The lock belongs to this thread until it is released.
        is_over.wait()

    def give() -> None:
        for _ in range(rounds):
            hands.get().release()
        is_over.wait()

    with handles(ipc.Lock) as locks:
        run(*(lambda lock=lock: take(lock) for lock in locks), *(give for _ in locks))
        assert counter[0] == rounds * CREW, counter
        deaths_are_noticed([locks[0], ipc.Lock()])


def semaphore(rounds: int, kind: Any = ipc.Semaphore) -> None:
    """Take and give permits: the account of the process shows how many it has."""
    inside = [0] * CREW

    def use(number: int, permits: Any) -> None:
        for turn in range(rounds):
            with permits:
                inside[number] = 1
                assert sum(inside) <= 3, inside
                inside[number] = 0
            if turn % 4 == 0 and permits.acquire(blocking=False):
                permits.release()

    with handles(lambda name: kind(3, name)) as all_:
        run(*(lambda number=number, permits=permits: use(number, permits) for number, permits in enumerate(all_)))
        permits = all_[0]
        statistics = permits.statistics()
        assert (statistics["value"], statistics["held"], statistics["processes"]) == (3, 0, 1), statistics
        in_killed_child(lambda: [permits.acquire() for _ in range(2)])
        assert permits.make_consistent() == 2
        assert permits.value == 3


def bounded(rounds: int) -> None:
    """Take and give permits of a bounded semaphore."""
    semaphore(rounds, ipc.BoundedSemaphore)


def rwlock(rounds: int) -> None:
    """Let writers change two numbers; readers always see them equal."""
    pair = [0, 0]

    def use(number: int, lock: Any) -> None:
        for turn in range(rounds):
            if (turn + number) % 4 == 0:
                with lock.writer:
                    pair[0] += 1
                    pair[1] += 1
            else:
                with lock.reader:
                    assert pair[0] == pair[1], pair

    with handles(ipc.RWLock) as locks:
        run(*(lambda number=number, lock=lock: use(number, lock) for number, lock in enumerate(locks)))
        assert pair == [rounds * CREW // 4] * 2, pair
        assert locks[0].readers == 0
        # The writer finds the dead reader from what the living processes' accounts say.
        in_killed_child(locks[0].reader.acquire)
        with locks[0].writer:
            assert locks[0].readers == 0


def condition(rounds: int) -> None:
    """Take every item that was notified."""
    items = [0]

    def put(changed: Any) -> None:
        for _ in range(rounds):
            with changed:
                items[0] += 1
                changed.notify()

    def take(changed: Any) -> None:
        for _ in range(rounds):
            with changed:
                changed.wait_for(lambda: items[0] > 0)
                items[0] -= 1

    with handles(lambda name: ipc.Condition(name=name)) as all_:
        run(*(lambda changed=changed, body=body: body(changed) for changed in all_[:2] for body in (put, take)))
        assert items == [0]
        assert all_[0].waiting == 0


def events(rounds: int) -> None:
    """Pass a turn around by events, and end each lap with a countdown."""
    with (
        handles(lambda name: ipc.Event(f"{name}-a")) as first,
        handles(lambda name: ipc.Event(f"{name}-b")) as second,
        handles(lambda name: ipc.CountdownEvent(rounds * 2, f"{name}-c")) as laps,
    ):

        def pass_on(awaited: Any, following: Any, lap: Any) -> None:
            for _ in range(rounds):
                assert awaited.wait()
                awaited.clear()
                lap.down()
                following.set()

        first[0].set()
        run(
            lambda: pass_on(first[0], second[0], laps[0]),
            lambda: pass_on(second[1], first[1], laps[1]),
            laps[0].wait,
            laps[1].wait,
        )
        assert laps[0].value == 0


def barrier(rounds: int) -> None:
    """Check that every round has each order of arrival once."""
    places: list[list[int]] = [[] for _ in range(rounds)]

    def meet(barrier: Any) -> None:
        for turn in range(rounds):
            places[turn].append(barrier.wait())

    with handles(lambda name: ipc.Barrier(CREW, name=name)) as barriers:
        run(*(lambda barrier=barrier: meet(barrier) for barrier in barriers))
        assert all(sorted(turn) == list(range(CREW)) for turn in places)


def items(rounds: int) -> None:
    """Move items of many lengths through a queue that is mostly full: none is lost, duplicated or out of order."""
    had: list[list[tuple[int, int]]] = [[], []]

    def put(number: int, channel: Any) -> None:
        for turn in range(rounds):
            channel.put((number, turn, b"x" * (turn * 37 % 300)))

    def take(number: int, channel: Any) -> None:
        for _ in range(rounds):
            source, turn, padding = channel.get()
            assert len(padding) == turn * 37 % 300
            had[number].append((source, turn))

    with handles(lambda name: ipc.Queue(name=name, capacity=1024)) as all_:
        run(
            *(lambda number=number: put(number, all_[number]) for number in range(2)),
            *(lambda number=number: take(number, all_[number]) for number in range(2)),
        )
        assert all_[0].empty()
    everything = sorted(had[0] + had[1])
    assert everything == [(source, turn) for source in range(2) for turn in range(rounds)]
    for one in had:
        assert all([turn for source, turn in one if source == number] == sorted(
            turn for source, turn in one if source == number) for number in range(2))  # fmt: skip


def opening(rounds: int) -> None:
    """Check that objects of one name that are made concurrently are one, with one account of this process."""
    for turn in range(max(1, rounds // 20)):
        name = f"{NAME}-{turn}"
        made: list[Any] = []

        def open_one(name: str = name, made: list[Any] = made) -> None:
            permits = ipc.Semaphore(CREW, name)
            made.append(permits)
            permits.acquire()

        run(*([open_one] * CREW))
        statistics = made[0].statistics()
        assert (statistics["value"], statistics["held"], statistics["processes"]) == (0, CREW, 1), statistics
        for permits in made:
            permits.close()


def forks(rounds: int) -> None:
    """Check that a child forked while threads are inside finds nothing locked."""
    warnings.simplefilter("ignore", DeprecationWarning)
    is_over = threading.Event()

    def hammer() -> None:
        lock, permits = ipc.Lock(), ipc.Semaphore(2)
        while not is_over.is_set():
            with lock, permits:
                ipc.Event(NAME).close()

    def fork() -> None:
        lock, permits = ipc.Lock(), ipc.Semaphore(2)
        try:
            for _ in range(max(1, rounds // 50)):
                child = os.fork()
                if child == 0:
                    with lock, permits, ipc.Lock():
                        ipc.Event(f"{NAME}-child").close()
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            is_over.set()

    run(fork, *([hammer] * (CREW - 1)))


SCENARIOS: dict[str, tuple[Callable[[int], None], int]] = {
    scenario.__name__: (scenario, rounds)
    for scenario, rounds in (
        (lock, 20_000), (rlock, 20_000), (baton, 5_000), (semaphore, 40_000), (bounded, 40_000), (rwlock, 20_000),
        (condition, 5_000), (events, 5_000), (barrier, 2_000), (items, 5_000), (opening, 1_000), (forks, 1_000),
    )
}  # fmt: skip
"""Each with a number of rounds that takes some tenths of a second."""

if __name__ == "__main__":
    faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)
    scenario, rounds = SCENARIOS[sys.argv[1]]
    scenario(int(sys.argv[2]) if len(sys.argv) > 2 else rounds)
