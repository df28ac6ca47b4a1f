"""A second `__init__` of a semaphore or a queue for which parties wait: they wait on, for the new permits or items.

Each test is a program of its own, under the watchdog: a party that is forgotten waits for ever.
"""

from __future__ import annotations

import pytest

from tests.conftest import Programs

SEMAPHORE = """
import asyncio, threading, unsnarl

semaphore = unsnarl.{kind}(1)
semaphore.acquire()
threads = [threading.Thread(target=semaphore.acquire) for _ in range(2)]
for thread in threads:
    thread.start()
while semaphore.waiting < 2:
    pass
semaphore.__init__(0)
print(semaphore.acquire(timeout=0), semaphore.waiting)
semaphore.__init__(3)
for thread in threads:
    thread.join()
print(semaphore.value, semaphore.waiting)

async def main():
    semaphore.__init__(0)
    task = asyncio.ensure_future(semaphore.async_acquire())
    await asyncio.sleep(0)
    semaphore.__init__(1)
    await task
    print(semaphore.value, semaphore.waiting)

asyncio.run(main())
semaphore.release()
print(semaphore.value)
"""


@pytest.mark.parametrize("kind", ["Semaphore", "BoundedSemaphore"])
def test_a_waiter_at_a_semaphore_gets_a_permit_of_the_new_count(programs: Programs, kind: str) -> None:
    outcome = programs.python(programs.write("semaphore.py", SEMAPHORE.format(kind=kind)))
    assert (outcome.status, outcome.stdout) == (0, b"False 2\n1 0\n0 0\n1\n"), outcome.complaint


QUEUE = """
import threading, unsnarl

queue = unsnarl.{kind}(1)
queue.put(1)
got = []
put = threading.Thread(target=queue.put, args=(2,))
join = threading.Thread(target=queue.join)
for thread in (put, join):
    thread.start()
while queue.waiting < 2:
    pass
queue.__init__(1)
join.join()
put.join()
print(queue.get(), queue.waiting, queue.unfinished_tasks)

get = threading.Thread(target=lambda: got.append(queue.get()))
get.start()
while not queue.waiting:
    pass
queue.__init__(1)
print(queue.waiting)
queue.put(3)
get.join()
print(got, queue.waiting, queue.unfinished_tasks)
"""


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue"])
def test_a_waiter_at_a_queue_finds_the_new_items(programs: Programs, kind: str) -> None:
    outcome = programs.python(programs.write("queue.py", QUEUE.format(kind=kind)))
    assert (outcome.status, outcome.stdout) == (0, b"2 0 1\n1\n[3] 0 1\n"), outcome.complaint
