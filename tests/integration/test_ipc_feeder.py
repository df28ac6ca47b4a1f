"""A queue of processes whose items wait for room: what `join` and exit wait for in each process."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from unsnarl.ipc import process_queue
from unsnarl.ipc.process_queue import JoinableQueue, ProcessQueue

ITEM = b"x" * 2000
SMALL = "import unsnarl.ipc.process_queue as made\nmade.CAPACITY = 4096\nqueue = made.ProcessQueue()\n"
PUT = "for _ in range(4): queue.put(b'x' * 2000)\n"
GET = "for _ in range(4): queue.get()\nwhile not queue._own_feeder().is_idle(): pass\n"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues with room for two items."""
    monkeypatch.setattr(process_queue, "CAPACITY", 4096)


@pytest.mark.parametrize(
    "program",
    ["queue.cancel_join_thread()\n" + PUT, PUT + GET + PUT + "queue.cancel_join_thread()\n"],
    ids=["before the first item", "after a second burst"],
)
def test_a_process_that_gives_its_items_up_ends(program: str) -> None:
    assert subprocess.run([sys.executable, "-c", SMALL + program], timeout=100, check=False).returncode == 0


def test_items_that_nobody_would_feed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    queue = ProcessQueue()
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", no_thread)
        put = sum(is_put(queue) for _ in range(6))
    assert 0 < put < 6
    queue.put(b"the last")
    assert [queue.get(timeout=60) for _ in range(put + 1)] == [ITEM] * put + [b"the last"]


def is_put(queue: ProcessQueue) -> bool:
    try:
        queue.put(ITEM)
    except RuntimeError:
        return False
    return True


def test_a_join_with_a_timeout_does_not_wait_for_room() -> None:
    queue = JoinableQueue()
    for _ in range(4):
        queue.put(ITEM)
    assert queue.join(0.01) is False
    for _ in range(4):
        queue.get(timeout=60)
        queue.task_done()
    assert queue.join(60) is True
