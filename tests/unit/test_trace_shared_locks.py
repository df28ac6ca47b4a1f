"""Locks that processes share: of files, and of multiprocessing where the program itself waits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import shared_locks
from unsnarl.trace.model import FILE_LOCK, IN_IO, Process

ENTER = ("/lib/multiprocessing/synchronize.py", "SemLock.__enter__", 95)
GET = ("/lib/multiprocessing/queues.py", "SimpleQueue.get", 386)
WORK = ("/srv/app.py", "work", 7)


def run(*stack: tuple[str, str, int], peers: dict[str, int] | None = None, share: float = 0.5) -> Process:
    """Return a run whose thread is in I/O at a stack, the innermost line first, for a share of its life."""
    in_io_ns = int(share * LENGTH)
    last = len(stack)
    tables: dict[str, Any] = {
        "locations": {str(number): list(line) for number, line in enumerate(stack, 1)},
        "nodes": {str(number): [number + 1 if number < last else 0, number] for number in range(1, last + 1)},
        "stacks": [[0, IN_IO, 1, in_io_ns]],
        "peers": [{"thread": 0, "node": 1, "peer": peer, "count": count} for peer, count in (peers or {}).items()],
    }
    threads = [thread(0, "writer", io_ns=in_io_ns, asleep_ns=LENGTH - in_io_ns)]
    return process(length_ns=LENGTH, threads=threads, **tables)


def test_the_lock_of_a_file_has_its_share_of_a_line() -> None:
    [found] = shared_locks.findings(run(WORK, peers={FILE_LOCK: 60, "/srv/data": 40}))
    assert found.figures["total_ns"] == LENGTH * 3 // 10
    assert found.title.startswith("thread `writer` waits for the lock of a file at /srv/app.py:7 in work: 30 % of its")
    assert found.severity == "notable"


def test_a_lock_of_multiprocessing_is_named_where_the_program_takes_it() -> None:
    [found] = shared_locks.findings(run(ENTER, WORK))
    assert "waits for a lock between processes at /srv/app.py:7 in work" in found.title
    assert found.severity == "severe"


@pytest.mark.parametrize(
    "quiet",
    [
        run(ENTER, GET, WORK),  # an idle worker waits for an item
        run(ENTER, WORK, share=0.04),
        run(WORK, peers={"/srv/data": 40}),
        run(WORK, peers={FILE_LOCK: 2}),
    ],
)
def test_what_is_no_finding(quiet: Process) -> None:
    assert shared_locks.findings(quiet) == []
