"""Kill workers that share primitives, at random instants, and check that the others continue.

    python ipc_killer.py SECONDS [SEED]

Workers take locks, permits and read locks, meet at no barrier, and move numbered items through a queue. An item
counts as acknowledged once its `put` has returned and the worker has reported it on its own pipe, by a write that is
whole or missing. Invariant at the end: the locks can be taken, all permits are there, every acknowledged item came
out or went to a worker that was killed, and nothing is left in the segments' directory.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import select
import signal
import struct
import sys
import time
from typing import Any

from unsnarl import Empty, Full, ipc

WORKERS = 4
WATCHDOG_S = 60
MESSAGE = struct.Struct("=BII")
PUT, GOT = 1, 2


class Shared:
    """The primitives that the workers share."""

    def __init__(self) -> None:
        self.lock = ipc.Lock(f"killer.{os.getpid()}")
        self.rlock = ipc.RLock()
        self.permits = ipc.BoundedSemaphore(2)
        self.rw = ipc.RWLock()
        self.queue = ipc.BytesQueue(20, capacity=2048)
        self.condition = ipc.Condition(ipc.Lock())


def take(lock: Any) -> None:
    """Acquire, repairing if necessary."""
    while True:
        try:
            if not lock.acquire(timeout=WATCHDOG_S):
                os.write(2, f"a worker waited {WATCHDOG_S} s for {lock!r}\n".encode())
                os._exit(3)
        except ipc.OwnerDied:
            (lock if hasattr(lock, "make_consistent") else lock_of[id(lock)]).make_consistent()
            if hasattr(lock, "value"):
                continue  # of a semaphore nothing was acquired
        return


lock_of: dict[int, Any] = {}


def work(shared: Shared, seed: int, worker: int, report: int) -> None:
    """Do random operations for ever."""
    dice, numbers = random.Random(seed), itertools.count(1)
    reader, writer = shared.rw.reader, shared.rw.writer
    lock_of.update({id(reader): shared.rw, id(writer): shared.rw})
    while True:
        for lock in (shared.lock, shared.rlock, shared.permits, writer):
            take(lock)
            lock.release()
        with contextlib.suppress(ipc.OwnerDied):
            if reader.acquire(timeout=WATCHDOG_S):
                reader.release()
        meet(shared.condition)
        with contextlib.suppress(Full, Empty):
            for _ in range(dice.randrange(5)):
                put(shared.queue, worker, next(numbers), report)
            for _ in range(dice.randrange(5)):
                get(shared.queue, report)


def meet(condition: ipc.Condition) -> None:
    """Notify the waiters, and wait a moment for another worker's notification."""
    take(condition.lock)
    condition.notify()
    try:
        condition.wait(0.001)
    except ipc.OwnerDied:
        condition.lock.make_consistent()
    condition.lock.release()


def put(queue: ipc.BytesQueue, worker: int, number: int, report: int) -> None:
    """Put an item, then acknowledge it."""
    queue.put_bytes(MESSAGE.pack(PUT, worker, number) + b"." * (number % 40), False)
    os.write(report, MESSAGE.pack(PUT, worker, number))


def get(queue: ipc.BytesQueue, report: int) -> None:
    """Take an item, then report it."""
    _, worker, number = MESSAGE.unpack_from(queue.get_bytes(False))
    os.write(report, MESSAGE.pack(GOT, worker, number))


def start(shared: Shared, seed: int, worker: int, report: int) -> int:
    """Fork a worker."""
    child = os.fork()
    if child == 0:
        try:
            work(shared, seed, worker, report)
        finally:
            os._exit(4)
    return child


def drain(report: int, seen: dict[int, set[tuple[int, int]]]) -> None:
    """Read the reports that have arrived."""
    while select.select([report], [], [], 0)[0]:
        data = os.read(report, MESSAGE.size * 1000)
        for kind, worker, number in MESSAGE.iter_unpack(data):
            seen[kind].add((worker, number))


def main() -> None:
    """Kill for that many seconds, then check."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    dice = random.Random(seed)
    shared, seen = Shared(), {PUT: set[tuple[int, int]](), GOT: set[tuple[int, int]]()}
    report, write = os.pipe()
    number, kills, end = 0, 0, time.monotonic() + seconds
    alive: dict[int, int] = {}
    while time.monotonic() < end:
        while len(alive) < WORKERS:
            number += 1
            alive[start(shared, dice.getrandbits(32), number, write)] = number
        # The instant is random here; the test does not wait for anything.
        select.select([report], [], [], dice.random() * 0.01)
        drain(report, seen)
        victim = dice.choice(list(alive))
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        assert os.WIFSIGNALED(status), f"worker {alive[victim]} ended by itself: {status} (seed {seed})"
        del alive[victim]
        kills += 1
    for victim in alive:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
    drain(report, seen)
    conclude(shared, seen, number)
    print(f"{kills} kills, {len(seen[PUT])} items acknowledged, seed {seed}")


def conclude(shared: Shared, seen: dict[int, set[tuple[int, int]]], workers: int) -> None:
    """Check what must hold."""
    lock_of[id(shared.rw.writer)] = shared.rw
    for lock in (shared.lock, shared.rlock, shared.condition.lock):
        take(lock)
        lock.release()
    writer = shared.rw.writer
    lock_of[id(writer)] = shared.rw
    take(writer)
    writer.release()
    assert shared.rw.readers == 0
    shared.permits.make_consistent()
    assert shared.permits.value == 2, shared.permits.statistics()
    while not shared.queue.empty():
        _, whose, which = MESSAGE.unpack_from(shared.queue.get_bytes(False))
        seen[GOT].add((whose, which))
    # A killed worker can have taken one item that it did not live to report.
    missing = seen[PUT] - seen[GOT]
    assert len(missing) <= workers, f"{len(missing)} items are lost: {sorted(missing)[:20]}"
    name = shared.lock.name
    shared.lock.close()
    assert name is not None
    assert not any(entry.endswith(f"-{name}") for entry in os.listdir("/dev/shm")), "a segment is left"


if __name__ == "__main__":
    main()
