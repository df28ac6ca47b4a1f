"""Let many processes share one of each primitive, and kill some that hold one.

    python ipc_crowd.py PROCESSES

Every process takes the lock, a permit and a read lock, puts an item, meets all the others at a barrier and waits for
the event. Invariant: nothing is counted twice or lost, not even by the tenth of them that is killed afterwards while
it holds a permit.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from typing import Any

from unsnarl import ipc

TIMEOUT_S = 240


class Shared:
    """The primitives that the processes share."""

    def __init__(self, count: int) -> None:
        self.context: Any = ipc.get_context("fork")
        self.total = multiprocessing.get_context("fork").RawValue("l", 0)
        self.lock, self.permits, self.rw = self.context.Lock(), self.context.Semaphore(count), ipc.RWLock()
        self.queue, self.barrier, self.event = self.context.Queue(), self.context.Barrier(count + 1), ipc.Event()

    def work(self, number: int, is_doomed: bool) -> None:
        """Use one of each; a doomed process waits for its end with a permit."""
        with self.lock:
            self.total.value += 1
        with self.rw.reader:
            self.queue.put(number)
        if is_doomed:
            self.permits.acquire()
        self.barrier.wait(TIMEOUT_S)
        if is_doomed:
            signal.pause()
        if not self.event.wait(TIMEOUT_S):
            os._exit(3)

    def check(self, count: int) -> None:
        """Check that all processes arrived: nothing was counted twice or lost."""
        assert self.total.value == count, self.total.value
        assert sorted(self.queue.get(timeout=TIMEOUT_S) for _ in range(count)) == list(range(count))
        assert self.rw.writer.acquire(timeout=TIMEOUT_S)
        self.rw.writer.release()


def main() -> None:
    """Start that many processes."""
    count = int(sys.argv[1])
    shared, doomed = Shared(count), count // 10
    processes: list[Any] = [
        shared.context.Process(target=shared.work, args=(number, number < doomed), daemon=True)
        for number in range(count)
    ]
    ipc.start_together(processes)
    shared.barrier.wait(TIMEOUT_S)
    shared.check(count)
    for process in processes[:doomed]:
        os.kill(process.pid, signal.SIGKILL)
        process.join(TIMEOUT_S)
    assert shared.permits.statistics()["lost"] == doomed, shared.permits.statistics()
    assert shared.permits.make_consistent() == doomed
    assert shared.permits.value == count
    shared.event.set()
    for process in processes[doomed:]:
        process.join(TIMEOUT_S)
        assert process.exitcode == 0, process
    print(f"{count} processes met")


if __name__ == "__main__":
    main()
