"""Waits for room in a queue are told from waits for its mutex."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import queues
from unsnarl.trace.model import IN_IO, LOCK

WAIT = ("/lib/threading.py", "Condition.wait", 359)
ENTER = ("/lib/threading.py", "Condition.__enter__", 304)
RESTORE = ("/lib/threading.py", "Condition._acquire_restore", 316)
PUT = ("/lib/queue.py", "Queue.put", 140)
WORK = ("/srv/app.py", "produce", 7)


@pytest.mark.parametrize(
    ("stack", "kinds"),
    [
        ((WAIT, PUT, WORK), ["full-queue"]),
        ((ENTER, PUT, WORK), []),
        ((RESTORE, WAIT, PUT, WORK), []),
        ((PUT, WORK), []),
    ],
)
def test_a_wait_for_the_mutex_is_none_for_room(stack: tuple[tuple[str, str, int], ...], kinds: list[str]) -> None:
    last = len(stack)
    tables: dict[str, Any] = {
        "locations": {str(number): list(line) for number, line in enumerate(stack, 1)},
        "nodes": {str(number): [number + 1 if number < last else 0, number] for number in range(1, last + 1)},
        "stacks": [[0, LOCK, 1, LENGTH]],
    }
    run = process(length_ns=LENGTH, threads=[thread(0, "producer", on_lock_ns=LENGTH)], **tables)
    assert [finding.kind for finding in queues.findings(run)] == kinds


FEEDS = [
    ("/lib/multiprocessing/connection.py", "Connection._send", 384),
    ("/lib/multiprocessing/queues.py", "Queue._feed", 268),
]
JOINS = [("/lib/threading.py", "Thread.join", 1092), ("/lib/multiprocessing/queues.py", "Queue._finalize_join", 217)]


@pytest.mark.parametrize(
    ("feeds_ns", "joins_ns", "waited_ns"),
    [(LENGTH, LENGTH // 2, LENGTH // 2), (LENGTH, queues.UNREAD_NS - 1, 0), (0, LENGTH, 0), (LENGTH, 0, 0)],
)
def test_a_process_at_its_end_waits_for_a_reader(feeds_ns: int, joins_ns: int, waited_ns: int) -> None:
    tables: dict[str, Any] = {
        "locations": {str(number): list(line) for number, line in enumerate([*FEEDS, *JOINS], 1)},
        "nodes": {"1": [2, 1], "2": [0, 2], "3": [4, 3], "4": [0, 4]},
        "stacks": [[1, IN_IO, 1, feeds_ns], [0, LOCK, 3, joins_ns]],
    }
    threads = [thread(0, "MainThread", on_lock_ns=joins_ns), thread(1, "QueueFeederThread", io_ns=feeds_ns)]
    found = queues.findings(process(length_ns=LENGTH, threads=threads, **tables))
    assert [(one.kind, one.thread, one.figures["waited_ns"]) for one in found] == (
        [("unread-queue", "MainThread", waited_ns)] if waited_ns else []
    )
