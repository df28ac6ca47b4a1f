"""What programs read of the standard library's primitives although it is private: how many parties wait; and a repr."""

from __future__ import annotations

import multiprocessing
import queue
import re
import threading
from typing import Any

import pytest

import unsnarl
from unsnarl import ipc
from unsnarl.sync import standard

WAIT_S = 30.0
CONTEXTS = [multiprocessing.get_context("spawn"), ipc.get_context("spawn")]


def waiting_thread(condition: Any) -> threading.Thread:
    """Return a thread that waits on the condition until it is notified."""
    arrived = threading.Semaphore(0)

    def wait() -> None:
        with condition:
            arrived.release()
            condition.wait(WAIT_S)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert arrived.acquire(timeout=WAIT_S)
    with condition:
        return thread  # it gave the lock up, so it waits


@pytest.mark.parametrize("make", [threading.Condition, standard.Condition, unsnarl.Condition])
def test_the_waiters_of_a_condition_can_be_counted(make: Any) -> None:
    condition = make()
    assert not condition._waiters
    threads = [waiting_thread(condition) for _ in range(2)]
    assert len(condition._waiters) == 2
    for left in (1, 0):
        with condition:
            condition.notify()
            assert len(condition._waiters) == left
    for thread in threads:
        thread.join(WAIT_S)


@pytest.mark.parametrize("base", [threading.Condition, standard.Condition])
def test_a_subclass_may_keep_waiters_of_its_own(base: Any) -> None:
    class Own(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._waiters = ["mine"]

    assert Own()._waiters == ["mine"]


@pytest.mark.parametrize("make", [queue.Queue, standard.Queue, unsnarl.Queue])
def test_the_waiters_of_a_queue_can_be_counted(make: Any) -> None:
    line = make(1)
    conditions = (line.not_empty, line.not_full, line.all_tasks_done)

    def counts_while(wait: Any, finish: Any) -> list[int]:
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        while not any(condition._waiters for condition in conditions):
            pass
        counts = [len(condition._waiters) for condition in conditions]
        finish()
        thread.join(WAIT_S)
        return counts

    assert counts_while(line.get, lambda: line.put(1)) == [1, 0, 0]
    line.put(2)
    assert counts_while(lambda: line.put(3), line.get) == [0, 1, 0]
    line.task_done()
    line.task_done()
    assert counts_while(line.join, line.task_done) == [0, 0, 1]
    assert not any(condition._waiters for condition in conditions)


def test_a_subclass_of_a_queue_may_have_a_count_of_its_own() -> None:
    class Own(unsnarl.Queue[int]):
        _waiting = 0  # type: ignore[assignment]

    line = Own()
    assert (len(line.not_empty._waiters), line._waiting) == (0, 0)


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_waiters_of_a_condition_between_processes_can_be_counted(context: Any) -> None:
    condition = context.Condition()

    def waiting() -> int:
        return int(condition._sleeping_count.get_value() - condition._woken_count.get_value())

    assert waiting() == 0
    thread = waiting_thread(condition)
    assert waiting() == condition._sleeping_count._semlock._get_value() == 1
    with condition:
        condition.notify()
    thread.join(WAIT_S)
    assert (waiting(), condition._wait_semaphore.get_value()) == (0, 0)


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_event_between_processes_prints_as_the_standard_librarys(context: Any) -> None:
    event = context.Event()
    for state in ("unset", "set"):
        assert re.fullmatch(rf"<Event at {id(event):#x} {state}>", repr(event))
        event.set()


def test_an_event_with_a_name_says_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSNARL_SHM", str(tmp_path))
    assert repr(ipc.Event("ready")) == '<unsnarl.ipc.Event "ready": unset>'
