"""The account of a process's time: its parts add up to the totals, and its shares to 100 %."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_trace_findings import LENGTH, MS, long_run, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import account
from unsnarl.trace.model import C_LOCK, Process


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=12))
def test_shares_add_up_to_100(times: list[int]) -> None:
    found = account.shares(times)
    assert sum(found) == (100 if sum(times) else 0)
    assert all(abs(share - 100 * time / max(sum(times), 1)) <= 1 for share, time in zip(found, times, strict=True))


@given(st.lists(st.integers(0, LENGTH), min_size=4, max_size=4), st.integers(0, LENGTH), st.integers(0, LENGTH))
def test_parts_add_up_to_the_totals(totals: list[int], recorded_ns: int, imported_ns: int) -> None:
    names = ("running_ns", "waiting_ns", "on_lock_ns", "io_ns")
    entry = thread(0, "worker", **dict(zip(names, totals, strict=True)))
    one_import = {"name": "big.part", "parent": None, "thread": 0, "begin_ns": 0, "total_ns": imported_ns, "self_ns": 0}
    found = process(
        length_ns=LENGTH,
        threads=[entry],
        imports=[one_import],
        stacks=[[0, state, node, recorded_ns] for state in range(4) for node in (0, 1)],
    )
    assert sum(part.time_ns for part in account.parts_of(found, [0])) == sum(totals)


def test_io_is_divided_by_what_the_thread_was_seen_waiting_for() -> None:
    waits = [
        {"thread": 1, "node": 1, "peer": "127.0.0.1:5432", "count": 2},
        {"thread": 1, "node": 1, "peer": "a pipe", "count": 1},
    ]
    found = long_run([], waiting_ns=0, stacks=[[1, 3, 1, 900 * MS]], imports=[], peers=waits)
    parts = {part.what: part.time_ns for part in account.parts_of(found, [1])}
    assert parts == {
        "in I/O": LENGTH - 900 * MS,
        "waiting for 127.0.0.1:5432": 600 * MS,
        "waiting for a pipe": 300 * MS,
    }


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        ({"127.0.0.1:5432": 1, "a socket": 5}, {"waiting for 127.0.0.1:5432": 900}),
        (
            {"127.0.0.1:1": 1, "a Unix socket": 3, "a socket": 5},
            {"waiting for 127.0.0.1:1": 100, "waiting for a Unix socket": 300, "waiting for a socket": 500},
        ),
        ({"a pipe": 1, "a socket": 2}, {"waiting for a pipe": 300, "waiting for a socket": 600}),
        ({"a socket": 2}, {"waiting for a socket": 900}),
    ],
)
def test_a_socket_without_a_name_is_the_one_that_has_a_name_there(
    peers: dict[str, int], expected: dict[str, int]
) -> None:
    waits = [{"thread": 1, "node": 1, "peer": peer, "count": count} for peer, count in peers.items()]
    found = long_run([], waiting_ns=0, stacks=[[1, 3, 1, 900 * MS]], imports=[], peers=waits)
    parts = {part.what: part.time_ns // MS for part in account.parts_of(found, [1]) if part.place is not None}
    assert parts == expected


def test_a_thread_that_could_run_waits_for_a_processor_and_not_for_io() -> None:
    waits = [
        {"thread": 1, "node": 1, "peer": "a processor", "count": 3},
        {"thread": 1, "node": 1, "peer": "", "count": 1},
    ]
    found = long_run([], waiting_ns=0, stacks=[[1, 3, 1, 800 * MS]], imports=[], peers=waits)
    parts = {(part.what, part.place is None): part.time_ns for part in account.parts_of(found, [1])}
    assert parts["waiting for a processor", False] == 600 * MS
    assert parts["in I/O", False] == 200 * MS
    assert found.lacks_processor(1, 1)
    assert not found.lacks_processor(0, 1)


def test_a_thread_that_runs_in_short_calls_without_the_gil_computes_and_waits_for_nothing() -> None:
    waits = [
        {"thread": 1, "node": 1, "peer": "nothing, it computes", "count": 3},
        {"thread": 1, "node": 1, "peer": "", "count": 1},
    ]
    found = long_run([], waiting_ns=0, stacks=[[1, 3, 1, 800 * MS]], imports=[], peers=waits)
    parts = {part.what: part.time_ns for part in account.parts_of(found, [1]) if part.place is not None}
    assert parts == {"computing in C code without the GIL": 600 * MS, "in I/O": 200 * MS}


def test_the_line_names_the_function_and_the_line_for_all_threads_and_for_the_slowest() -> None:
    found = long_run([], waiting_ns=400 * MS, stacks=[[0, 0, 1, 7_000 * MS], [1, 3, 1, 1_000 * MS]], imports=[])
    [finding] = account.findings(found)
    assert finding.title.startswith("of 10.0 s: 48 % in I/O in `work` (worker.py:3), 35 % computing in `work`")
    assert finding.details[0].startswith("so 2 threads together; `worker`: 70 % computing in `work` (worker.py:3)")
    assert sum(map(int, re.findall(r"(\d+) %", finding.title))) == 100


def test_the_interpreter_s_own_frame_of_a_constructor_is_no_line() -> None:
    found = long_run(
        [],
        waiting_ns=0,
        locations={
            "1": ["/lib/socket.py", "readinto", 719],
            "2": ["__init__", "__init__", 0],
            "3": ["/lib/http.py", "h", 5],
        },
        nodes={"1": [2, 1], "2": [3, 2], "3": [0, 3]},
        text="cpython\x1f3.13\x1f/lib\x1fpython\x1fapp.py",
    )
    assert [line.file for line in found.stack(1)] == ["/lib/socket.py", "/lib/http.py"]
    assert str(found.line_of(1)) == "/lib/socket.py:719 in readinto"


LIBRARY = "/srv/lib/python3/site-packages"


def in_libraries(**members: Any) -> Process:
    """Return a run of one thread that is in I/O for 0.9 s in a library, which a line of the program calls."""
    given: dict[str, Any] = {
        "length_ns": LENGTH,
        "threads": [thread(0, "MainThread", io_ns=900 * MS)],
        "stacks": [[0, 3, 2, 900 * MS]],
        "locations": {"1": ["/srv/app.py", "crunch", 4], "2": [f"{LIBRARY}/polars/engine.py", "collect", 9],
                      "3": ["/venv/bin/polars", "<module>", 8]},
        "nodes": {"1": [0, 1], "2": [1, 2], "3": [0, 3]},
    }  # fmt: skip
    return process(**{**given, **members})


def test_the_program_s_line_is_named_and_not_the_library_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def source(file: str, _: int) -> str:
        return "frame.sort()\n" if file == "/srv/app.py" else ""

    monkeypatch.setattr("linecache.getline", source)
    [found] = account.findings(in_libraries())
    assert "in I/O in `crunch` (app.py:4)" in found.title
    assert found.details == ["app.py:4: frame.sort() (mostly in `collect`, polars/engine.py:9)"]


def test_the_script_that_starts_a_command_is_a_part_of_its_library() -> None:
    [found] = account.findings(in_libraries(nodes={"1": [0, 1], "2": [3, 2], "3": [0, 3]}))
    assert "in I/O in `collect` (engine.py:9)" in found.title


@pytest.mark.parametrize(
    ("threads", "words"),
    [(1, "waiting for threads of C code, or another process"), (2, "waiting for a lock in C code")],
)
def test_the_only_thread_waits_for_no_other_thread_s_lock(threads: int, words: str) -> None:
    waits = [{"thread": 0, "node": 2, "peer": C_LOCK, "count": 9}]
    every = [thread(number, f"t{number}", io_ns=900 * MS) for number in range(threads)]
    parts = account.parts_of(in_libraries(peers=waits, threads=every), [0])
    assert words in [part.what for part in parts]
