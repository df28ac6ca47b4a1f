"""Waits for room in a queue are told from waits for its mutex."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, MS, thread, waits
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import queues, stuck
from unsnarl.trace.model import IN_IO, LOCK, RUNNING

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


ROOM, ITEM, NOWHERE = 1, 4, 0
LINES = [WAIT, PUT, WORK, WAIT, ("/lib/queue.py", "Queue.get", 180)]
TABLES: dict[str, Any] = {
    "locations": {str(number): list(line) for number, line in enumerate(LINES, 1)},
    "nodes": {"1": [2, 1], "2": [3, 2], "3": [0, 3], "4": [5, 4], "5": [0, 5]},
}
"""The stacks of a producer that waits for room, and of a consumer that waits for an item."""


@pytest.mark.parametrize(
    ("known", "ends_ns", "detail"),
    [
        ([], [LENGTH // 4, LENGTH // 4], None),
        ([(0, 1, ROOM)], [LENGTH // 4, LENGTH], "the last thread that made room, `consumer`, had ended "),
        ([(1, 0, ITEM)], [LENGTH // 4, LENGTH], "the last thread that took items, `consumer`, had ended "),
        ([(0, 1, NOWHERE)], [LENGTH // 4, LENGTH], "the last thread that had woken it, `consumer`, had ended "),
        ([(0, 1, NOWHERE), (0, 2, NOWHERE)], [LENGTH // 8, LENGTH // 4], "the last thread that had woken it, `other`"),
        ([(0, 1, NOWHERE), (0, 2, NOWHERE)], [LENGTH // 4, LENGTH], None),
        ([(1, 0, NOWHERE)], [LENGTH // 4, LENGTH], None),
        ([(0, 1, ROOM), (0, 2, NOWHERE)], [LENGTH // 4, LENGTH], "the last thread that made room, `consumer`"),
        ([(0, 1, ROOM)], [3 * LENGTH // 4, LENGTH], None),
    ],
    ids=[
        "nobody is known",
        "made room",
        "took items",
        "waits without a stack",
        "two",
        "one lives",
        "not the producer's",
        "what is known best",
        "most of the wait before",
    ],
)
def test_consumers_that_have_ended_are_told(
    known: list[tuple[int, int, int]], ends_ns: list[int], detail: str | None
) -> None:
    locks = [waits(waiter=waiter, releaser=releaser, wait_node=node) for waiter, releaser, node in known]
    tables: dict[str, Any] = TABLES | {"stacks": [[0, LOCK, 1, LENGTH]], "locks": locks}
    threads = [thread(0, "producer", on_lock_ns=LENGTH), thread(1, "consumer"), thread(2, "other")]
    for one, end_ns in zip(threads[1:], ends_ns, strict=True):
        one.update(end_ns=end_ns, has_ended=end_ns < LENGTH)
    [found] = queues.full(process(length_ns=LENGTH, threads=threads, **tables))
    assert (found.figures["ended"], found.details[0][: len(detail or "")] if detail else None) == (bool(detail), detail)


@pytest.mark.parametrize(
    ("change", "ended"),
    [({"waiters": 1}, 1), ({"waiters": 2}, 0), ({"wait_node": NOWHERE, "waiter": 0, "releaser": 1, "count": 1}, 0)],
    ids=["one took items", "two took items", "a thread that was started"],
)
def test_a_consumer_that_lives_and_a_thread_that_was_started_are_no_consumers_that_have_ended(
    change: dict[str, int], ended: int
) -> None:
    stacks = [[0, LOCK, 1, LENGTH], [1, LOCK, ITEM, MS], [2, LOCK, ITEM, MS]]
    locks = [waits(waiter=1, releaser=0, wait_node=ITEM) | change]
    tables: dict[str, Any] = TABLES | {"stacks": stacks, "locks": locks}
    threads = [thread(0, "producer", on_lock_ns=LENGTH), thread(1, "consumer"), thread(2, "other")]
    threads[1].update(end_ns=LENGTH // 8, has_ended=True)
    [found] = queues.full(process(length_ns=LENGTH, threads=threads, **tables))
    assert found.figures["ended"] == ended


FEEDS = [
    ("/lib/multiprocessing/connection.py", "Connection._send", 384),
    ("/lib/multiprocessing/queues.py", "Queue._feed", 268),
]
JOINS = [
    ("/lib/threading.py", "Thread.join", 1092),
    ("/lib/multiprocessing/queues.py", "Queue._finalize_join", 217),
    ("/lib/multiprocessing/util.py", "_exit_function", 352),
]


@pytest.mark.parametrize(
    ("feeds_ns", "joins_ns", "joins", "severity"),
    [
        (LENGTH, LENGTH // 2 + 1, JOINS, "severe"),
        (LENGTH, LENGTH // 2, JOINS, "notable"),
        (LENGTH, LENGTH // 2, JOINS[:2], None),  # `join_thread`, before the end
        (LENGTH, min(stuck.LEAST_NS, LENGTH // 10) - 1, JOINS, None),
        (0, LENGTH, JOINS, None),
        (LENGTH, 0, JOINS, None),
    ],
)
def test_a_process_at_its_end_waits_for_a_reader(
    feeds_ns: int, joins_ns: int, joins: list[tuple[str, str, int]], severity: str | None
) -> None:
    lines = [*FEEDS, *joins]
    tables: dict[str, Any] = {
        "locations": {str(number): list(line) for number, line in enumerate(lines, 1)},
        "nodes": {"1": [2, 1], "2": [0, 2], "3": [4, 3], "4": [5 if len(lines) > 4 else 0, 4], "5": [0, 5]},
        "stacks": [[1, IN_IO, 1, feeds_ns], [0, LOCK, 3, joins_ns]],
    }
    threads = [thread(0, "MainThread", on_lock_ns=joins_ns), thread(1, "QueueFeederThread", io_ns=feeds_ns)]
    found = queues.findings(process(length_ns=LENGTH, threads=threads, **tables))
    assert [(one.kind, one.thread, one.severity, one.figures["waited_ns"]) for one in found] == (
        [("unread-queue", "MainThread", severity, joins_ns)] if severity else []
    )


JOIN, GET = ("/lib/queue.py", "Queue.join", 95), ("/lib/queue.py", "Queue.get", 180)
WAITS_IN_JOIN, WAITS_IN_GET, WORKS = [0, LENGTH, LOCK, 1], [0, LENGTH, LOCK, 3], [0, LENGTH, RUNNING, 5]


@pytest.mark.parametrize(
    ("worker", "other", "why"),
    [
        ({"end_ns": LENGTH // 2}, [], "`worker`, which took items, ended "),
        ({"has_ended": False, "stretches": [WAITS_IN_GET]}, [], "`worker`, which takes items, waits for more"),
        ({"has_ended": False, "stretches": [WORKS]}, [], None),
        ({"has_ended": False, "stretches": [[0, LENGTH // 2, LOCK, 3]]}, [], None),
        ({"end_ns": LENGTH // 2}, [WORKS], None),
    ],
    ids=["ended", "waits for more", "works", "has waited", "another one works"],
)
def test_nobody_is_left_to_finish_the_items_of_a_queue(
    worker: dict[str, Any], other: list[list[int]], why: str | None
) -> None:
    lines = [WAIT, JOIN, WAIT, GET, WORK]
    tables: dict[str, Any] = {
        "locations": {str(number): list(line) for number, line in enumerate(lines, 1)},
        "nodes": {"1": [2, 1], "2": [5, 2], "3": [4, 3], "4": [5, 4], "5": [0, 5]},
        "stacks": [[0, LOCK, 1, LENGTH], [1, LOCK, 3, LENGTH // 2]],
    }
    joins = {"has_ended": False, "stretches": [WAITS_IN_JOIN]}
    threads = [thread(0, "MainThread") | joins, thread(1, "worker") | worker]
    threads += [thread(2, "other") | {"has_ended": False, "stretches": other}] if other else []
    found = queues.findings(process(length_ns=LENGTH, threads=threads, **tables))
    assert [(one.kind, one.thread, one.place) for one in found] == (
        [("unfinished-queue", "MainThread", "/srv/app.py:7 in produce")] if why else []
    )
    assert not why or found[0].details[0].startswith(why)
