"""Waits for a lock until the end: nobody releases it, or the program ended while its holder was at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import stuck
from unsnarl.trace.model import LOCK, RUNNING

WAITS, WORKS, ELSEWHERE, SERVES, TAKES, ITS_OWN = 4, 5, 7, 10, 14, 18
"""Lines of the program."""


PROGRAM = """import threading
lock = 1
def work():
    with lock:
        sum()

    print()
def serve():
    with server, open("log") as log:
        server.run()

def take():
    app.locks[0].lock.acquire()
    sum()
    app.locks[0].lock.release()
def other():
    other_lock.acquire()
    sum()
"""


@pytest.mark.parametrize(
    ("line", "detail", "remedy"),
    [
        (WORKS, "`holder` was still at work at", "hold the lock for less time"),
        (TAKES, "`holder` was still at work at", "hold the lock for less time"),
        (SERVES, "does not release it any more", "acquire the locks in one order"),
        (ITS_OWN, "does not release it any more", "acquire the locks in one order"),
        (ELSEWHERE, "does not release it any more", "acquire the locks in one order"),
    ],
)
def test_a_holder_at_work_is_told_from_a_lock_that_is_lost(tmp_path: Path, line: int, detail: str, remedy: str) -> None:
    program = tmp_path / "app.py"
    program.write_text(PROGRAM)
    tables: dict[str, Any] = {
        "locations": {str(number): [str(program), "work", number] for number in (WAITS, line)},
        "nodes": {str(number): [0, number] for number in (WAITS, line)},
    }
    waiter = {**thread(0, "waiter"), "has_ended": False, "stretches": [[0, LENGTH, LOCK, WAITS]]}
    holder = {**thread(1, "holder"), "has_ended": False, "stretches": [[0, LENGTH, RUNNING, line]]}
    [found] = stuck.findings(process(length_ns=LENGTH, threads=[waiter, holder], **tables))
    assert any(detail in each for each in found.details)
    assert found.remedy is not None
    assert remedy in found.remedy.what
