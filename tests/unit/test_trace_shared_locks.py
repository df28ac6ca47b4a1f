"""Locks that processes share: of files, and of multiprocessing where the program itself waits; and locks of C code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace import lock_lines
from unsnarl.trace.findings import account, locks, shared_locks
from unsnarl.trace.findings.finding import Finding
from unsnarl.trace.model import C_LOCK, COMPUTING, FILE_LOCK, IN_IO, Process

ENTER = ("/lib/multiprocessing/synchronize.py", "SemLock.__enter__", 95)
ENTER_CONDITION = ("/lib/multiprocessing/synchronize.py", "Condition.__enter__", 244)
WAIT = ("/lib/multiprocessing/synchronize.py", "Condition.wait", 268)
WAIT_FOR = ("/lib/multiprocessing/synchronize.py", "Condition.wait_for", 316)
WAIT_FOR_EVENT = ("/lib/multiprocessing/synchronize.py", "Event.wait", 356)
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
        run(WAIT, WORK),  # another process has something to do before it notifies
        run(WAIT, WAIT_FOR, WORK),
        run(WAIT, WAIT_FOR_EVENT, WORK),
        run(ENTER, WAIT_FOR_EVENT, WORK),
        run(WORK, peers={C_LOCK: 100}),  # a line that acquires nothing, as far as its source tells
        run(ENTER, WORK, share=0.04),
        run(WORK, peers={"/srv/data": 40}),
        run(WORK, peers={FILE_LOCK: 2}),
    ],
)
def test_what_is_no_finding(quiet: Process) -> None:
    assert shared_locks.findings(quiet) == []


def test_the_lock_of_a_condition_is_a_lock() -> None:
    [found] = shared_locks.findings(run(ENTER, ENTER_CONDITION, WORK))
    assert "waits for a lock between processes at /srv/app.py:7 in work" in found.title


def test_a_wait_for_a_notice_is_one_for_another_process() -> None:
    parts = account.parts_of(run(WAIT, WAIT_FOR_EVENT, WORK), [0])
    assert "waiting for another process" in {part.what for part in parts}


@pytest.mark.parametrize(
    ("line", "kinds"), [("lock.acquire()", ["shared-lock"]), ("total = matrix.dot(matrix)", []), ("get(lock)", [])]
)
def test_a_lock_of_c_code_is_named_where_the_program_acquires_it(tmp_path: Path, line: str, kinds: list[str]) -> None:
    program = tmp_path / "app.py"
    program.write_text(f"def work():\n    {line}\n")
    blocked = run((str(program), "work", 2), peers={C_LOCK: 60, "": 40})
    found = shared_locks.findings(blocked)
    assert [finding.kind for finding in found] == kinds
    if found:
        assert "waits for a lock in C code at" in found[0].title
        assert found[0].figures["total_ns"] == LENGTH * 3 // 10
    # Whatever the line is, nobody knows that locks are not the cause.
    assert locks.findings(blocked) == []


@pytest.mark.parametrize(
    "quiet",
    [
        run(WORK, peers={C_LOCK: 2}),
        run(WORK, peers={C_LOCK: 60}, share=0.01),
        run(WAIT, WAIT_FOR_EVENT, WORK, peers={C_LOCK: 60}),
    ],
)
def test_locks_are_not_the_cause_where_c_code_hardly_waits(quiet: Process) -> None:
    assert [finding.kind for finding in locks.findings(quiet)] == ["no-lock-contention"]


def test_an_object_that_locks_in_c_code_is_named_where_another_thread_uses_it(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(
        "db = 1\ndef find():\n    db.execute()\ndef report():\n    db.execute()\ndef sums():\n    sum()\n"
    )

    def found(other: int) -> list[Finding]:
        tables: dict[str, Any] = {
            "locations": {str(line): [str(program), "work", line] for line in (3, 5, 7)},
            "nodes": {str(line): [0, line] for line in (3, 5, 7)},
            "stacks": [[0, IN_IO, 3, LENGTH], [1, COMPUTING, other, LENGTH]],
            "peers": [{"thread": 0, "node": 3, "peer": C_LOCK, "count": 90}],
        }
        threads = [thread(0, "find", io_ns=LENGTH), thread(1, "report", computing_ns=LENGTH)]
        return shared_locks.findings(process(length_ns=LENGTH, threads=threads, **tables))

    [shared] = found(5)
    assert "thread `find` waits for the lock in C code of `db` at" in shared.title
    assert shared.remedy is not None
    assert "an object of its own" in shared.remedy.what
    assert found(7) == []


def test_the_source_of_a_line_is_examined_once_for_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "app.py"
    program.write_text("db = 1\ndef find():\n    db.execute()\n")
    examined: list[ast.AST] = []

    def examine(function: ast.AST) -> set[str]:
        examined.append(function)
        return set()

    monkeypatch.setattr(lock_lines, "_local_names", examine)
    tables: dict[str, Any] = {
        "locations": {"3": [str(program), "find", 3]},
        "nodes": {"3": [0, 3]},
        "stacks": [[number, IN_IO, 3, LENGTH] for number in range(9)],
        "peers": [{"thread": number, "node": 3, "peer": C_LOCK, "count": 90} for number in range(9)],
    }
    threads = [thread(number, "find", io_ns=LENGTH) for number in range(9)]
    assert shared_locks.findings(process(length_ns=LENGTH, threads=threads, **tables)) == []
    assert len(examined) == 1


def test_the_objects_that_threads_may_share_are_neither_local_nor_modules(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    lines = [
        "import zlib",
        "def work(self, own):",
        "    mine = 1",
        "    self.db.run(own.x(), mine.y(), zlib.z(), db.a())",
    ]
    program.write_text("\n".join(lines))
    assert lock_lines.shared_objects(str(program), 4) == {"self.db", "db"}
    assert lock_lines.shared_objects(str(tmp_path / "none.py"), 4) == frozenset()


def test_a_permit_is_given_back_where_the_source_does_so(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    lines = ["def a():", "    if not s.acquire():", "        return", "    s.release()", "def b():", "    s.acquire()"]
    program.write_text("\n".join([*lines, "    t.release()", "def c():", "    with s:", "        pass"]))
    assert [lock_lines.gives_back(str(program), line) for line in (2, 6, 9)] == [True, False, True]
