"""Hypothesis state machines: the Python classes against plain models."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import unsnarl


class QueueMachine(RuleBasedStateMachine):
    """A bounded queue against a list, without waiters."""

    CAPACITY = 3
    make: Any = staticmethod(unsnarl.Queue)

    def __init__(self) -> None:
        super().__init__()
        self.queue = self.make(self.CAPACITY)
        self.model: deque[int] = deque()
        self.unfinished = 0
        self.closed = False

    def next_item(self) -> int:
        return self.model[0]

    @rule(item=st.integers(0, 9))
    def put(self, item: int) -> None:
        try:
            self.queue.put_nowait(item)
        except unsnarl.Full:
            assert len(self.model) == self.CAPACITY
        except unsnarl.ShutDown:
            assert self.closed
        else:
            assert not self.closed
            assert len(self.model) < self.CAPACITY
            self.model.append(item)
            self.unfinished += 1

    @rule()
    def get(self) -> None:
        try:
            item = self.queue.get(block=False)
        except unsnarl.Empty:
            assert not self.model
            assert not self.closed
        except unsnarl.ShutDown:
            assert self.closed
            assert not self.model
        else:
            assert item == self.next_item()
            self.model.remove(item)

    @rule()
    def task_done(self) -> None:
        try:
            self.queue.task_done()
        except ValueError:
            assert self.unfinished == 0
        else:
            self.unfinished -= 1

    @rule()
    def clear(self) -> None:
        assert self.queue.clear() == len(self.model)
        self.unfinished = max(0, self.unfinished - len(self.model))
        self.model.clear()

    @precondition(lambda self: not self.closed)
    @rule(immediate=st.booleans())
    def shutdown(self, immediate: bool) -> None:
        self.queue.shutdown(immediate)
        self.closed = True
        if immediate:
            self.unfinished = max(0, self.unfinished - len(self.model))
            self.model.clear()

    @invariant()
    def agrees(self) -> None:
        assert self.queue.qsize() == len(self.model)
        assert self.queue.empty() == (not self.model)
        assert self.queue.full() == (len(self.model) >= self.CAPACITY)
        assert self.queue.unfinished_tasks == self.unfinished


class PriorityMachine(QueueMachine):
    make: Any = staticmethod(unsnarl.PriorityQueue)

    def next_item(self) -> int:
        return heapq.nsmallest(1, self.model)[0]


class ReadWriteMachine(RuleBasedStateMachine):
    """A read/write lock against two counters."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = unsnarl.RWLock()
        self.readers, self.writing = 0, False

    @rule()
    def read(self) -> None:
        assert self.lock.reader.acquire(False) == (not self.writing)
        self.readers += not self.writing

    @rule()
    def write(self) -> None:
        free = not self.writing and self.readers == 0
        assert self.lock.writer.acquire(False) == free
        self.writing = self.writing or free

    @precondition(lambda self: self.readers)
    @rule()
    def leave_reading(self) -> None:
        self.lock.reader.release()
        self.readers -= 1

    @precondition(lambda self: self.writing)
    @rule(downgrade=st.booleans())
    def leave_writing(self, downgrade: bool) -> None:
        if downgrade:
            self.lock.downgrade()
            self.readers += 1
        else:
            self.lock.writer.release()
        self.writing = False

    @precondition(lambda self: self.readers)
    @rule()
    def upgrade(self) -> None:
        assert self.lock.try_upgrade() == (self.readers == 1)
        if self.readers == 1:
            self.readers, self.writing = 0, True

    @invariant()
    def agrees(self) -> None:
        assert self.lock.statistics() == {"readers": self.readers, "writing": self.writing, "waiting": 0}


for machine in (QueueMachine, PriorityMachine, ReadWriteMachine):
    machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, database=None)

TestQueue = QueueMachine.TestCase
TestPriorityQueue = PriorityMachine.TestCase
TestReadWriteLock = ReadWriteMachine.TestCase
