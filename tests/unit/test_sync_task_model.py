"""Hypothesis state machines with tasks that wait, are cancelled and time out, against plain models.

The event loop runs only when a rule lets it, so a cancellation can fall between a grant and the moment its task
learns of it.

Invariant: no task is granted twice, nothing is lost, and the task that waited longest goes first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import unsnarl

Task = asyncio.Task[Any]


class LoopMachine(RuleBasedStateMachine):
    """A loop whose iterations a rule starts."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.waiting: list[Task] = []

    def wait_until_idle(self) -> None:
        # Each of the tasks that are notified together needs some iterations of the loop for the lock.
        for _ in range(60):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Task:
        task = self.loop.create_task(coroutine)
        self.wait_until_idle()
        return task

    def cancel(self, index: int) -> Task:
        task = self.waiting.pop(index % len(self.waiting))
        task.cancel()
        return task

    def teardown(self) -> None:
        for task in self.waiting:
            task.cancel()
        self.wait_until_idle()
        self.loop.close()


class SemaphoreMachine(LoopMachine):
    """A semaphore against a count."""

    def __init__(self) -> None:
        super().__init__()
        self.semaphore, self.free = unsnarl.Semaphore(1), 1

    @rule()
    def acquire_in_a_thread(self) -> None:
        assert self.semaphore.acquire(False) == (self.free > 0)
        self.free = max(0, self.free - 1)

    @rule()
    def acquire_in_a_task(self) -> None:
        task = self.start(self.semaphore.async_acquire())
        assert task.done() == (self.free > 0)
        if not task.done():
            self.waiting.append(task)
        self.free = max(0, self.free - 1)

    @rule()
    def time_out(self) -> None:
        task = self.start(self.semaphore.async_acquire(timeout=0))
        assert task.result() == (self.free > 0)
        self.free = max(0, self.free - 1)

    @rule()
    def release(self) -> None:
        self.semaphore.release()
        self.serve()

    def serve(self) -> None:
        if not self.waiting:
            self.free += 1
            return
        self.wait_until_idle()
        assert self.waiting.pop(0).result() is True

    @precondition(lambda self: self.waiting)
    @rule(index=st.integers(0, 9))
    def give_up(self, index: int) -> None:
        task = self.cancel(index)
        self.wait_until_idle()
        assert task.cancelled()

    @precondition(lambda self: self.waiting)
    @rule()
    def give_up_when_granted(self) -> None:
        self.semaphore.release()
        task = self.cancel(0)
        self.serve()
        self.wait_until_idle()
        assert task.cancelled()

    @invariant()
    def agrees(self) -> None:
        assert (self.semaphore.value, self.semaphore.waiting) == (self.free, len(self.waiting))


class ConditionMachine(LoopMachine):
    """A condition against a list of its waiters."""

    def __init__(self) -> None:
        super().__init__()
        self.condition = unsnarl.Condition()

    async def wait(self, timeout: float | None = None) -> bool:
        async with self.condition:
            return await self.condition.async_wait(timeout)

    @rule()
    def start_waiting(self) -> None:
        self.waiting.append(self.start(self.wait()))

    @rule(number=st.integers(0, 3))
    def notify(self, number: int) -> None:
        with self.condition:
            self.condition.notify(number)
        self.learn(number)

    @rule()
    def notify_all(self) -> None:
        with self.condition:
            self.condition.notify_all()
        self.learn(len(self.waiting))

    def learn(self, number: int) -> None:
        self.wait_until_idle()
        notified, self.waiting = self.waiting[:number], self.waiting[number:]
        assert all(task.result() is True for task in notified)

    @rule()
    def time_out(self) -> None:
        assert self.start(self.wait(timeout=0)).result() is False

    @precondition(lambda self: self.waiting)
    @rule(index=st.integers(0, 9))
    def give_up(self, index: int) -> None:
        task = self.cancel(index)
        self.wait_until_idle()
        assert task.cancelled()

    @precondition(lambda self: self.waiting)
    @rule()
    def give_up_when_notified(self) -> None:
        with self.condition:
            self.condition.notify()
        task = self.cancel(0)
        self.learn(1 if self.waiting else 0)
        assert task.cancelled()

    @invariant()
    def agrees(self) -> None:
        assert self.condition.waiting == len(self.waiting)
        assert not self.condition.locked()


class QueueMachine(LoopMachine):
    """A queue for two items, and its waiters for items or for room, one kind at a time."""

    CAPACITY = 2

    def __init__(self) -> None:
        super().__init__()
        self.queue: unsnarl.Queue[int] = unsnarl.Queue(self.CAPACITY)
        self.items: deque[int] = deque()
        self.put_later: list[int] = []
        self.next = 0

    @rule()
    def get(self) -> None:
        task = self.start(self.queue.async_get())
        if not self.items:
            self.waiting.append(task)
            return
        assert task.result() == self.items.popleft()
        if self.put_later:
            self.wait_until_idle()
            self.items.append(self.put_later.pop(0))
            assert self.waiting.pop(0).done()

    @rule()
    def put(self) -> None:
        self.next += 1
        task = self.start(self.queue.async_put(self.next))
        if len(self.items) == self.CAPACITY:
            self.put_later.append(self.next)
            self.waiting.append(task)
            return
        assert task.done()
        self.wait_until_idle()
        if self.waiting:
            assert self.waiting.pop(0).result() == self.next
        else:
            self.items.append(self.next)

    @precondition(lambda self: self.waiting)
    @rule(index=st.integers(0, 9))
    def give_up(self, index: int) -> None:
        if self.put_later:
            self.put_later.pop(index % len(self.put_later))
        task = self.cancel(index)
        self.wait_until_idle()
        assert task.cancelled()

    @precondition(lambda self: self.waiting and not self.put_later)
    @rule()
    def give_up_when_called(self) -> None:
        self.next += 1
        self.queue.put_nowait(self.next)
        task = self.cancel(0)
        self.wait_until_idle()
        assert task.cancelled()
        if self.waiting:
            assert self.waiting.pop(0).result() == self.next
        else:
            self.items.append(self.next)

    @invariant()
    def agrees(self) -> None:
        assert self.queue.qsize() == len(self.items)
        assert self.queue.waiting == len(self.waiting)


for machine in (SemaphoreMachine, ConditionMachine, QueueMachine):
    machine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, database=None)

TestSemaphore = SemaphoreMachine.TestCase
TestCondition = ConditionMachine.TestCase
TestQueue = QueueMachine.TestCase
