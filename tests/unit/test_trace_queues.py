"""Waits for room in a queue are told from waits for its mutex."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import queues
from unsnarl.trace.model import LOCK

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
