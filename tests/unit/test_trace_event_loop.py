"""Stalls of an event loop: how long it stood still, and what it did meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, MS, thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import event_loop
from unsnarl.trace.loop_rounds import LongRound, LoopRounds
from unsnarl.trace.model import COMPUTING, IN_IO, RUNNING, SLEEPING, Location, Process

IDLE, HASHES, AFTER, IN_GREENLET, UNKNOWN = 1, 2, 5, 6, 0
"""Nodes: the loop's selector and its caller, the line of a callback, a line of the program after its loop, the line of
a greenlet; and no stack."""


HANDLE = ("asyncio/events.py", "Handle._run")


def loop(
    *stretches: list[int], idle_in: str = "asyncio/base_events.py", runs: tuple[str, str] | None = HANDLE
) -> Process:
    """Return a run of one loop, which is idle for a second and then has these stretches (length, state, node).

    It runs callbacks below a function of a file; or each has a stack of its own, if ``runs`` is None.
    """
    at, placed = 1000 * MS, [[0, 1000 * MS, IN_IO, IDLE]]
    for length_ns, state, node in stretches:
        placed.append([at, length_ns, state, node])
        at += length_ns
    main = {**thread(0, "MainThread"), "stretches": placed}
    tables: dict[str, Any] = {
        "locations": {
            "1": ["/usr/lib/python3/selectors.py", "EpollSelector.select", 441],
            "2": ["/srv/app.py", "digest", 7],
            "3": [f"/usr/lib/python3/{idle_in}", "run_once", 9],
            "4": [f"/usr/lib/python3/{runs[0]}", runs[1], 88] if runs else ["", "", 0],
            "5": ["/srv/app.py", "<module>", 20],
        },
        "nodes": {
            "1": [3, 1],
            "2": [4 if runs else 0, 2],
            "3": [5, 3],
            "4": [3, 4],
            "5": [0, 5],
            "6": [0, 2],
        },
    }
    return process(length_ns=LENGTH, threads=[main], **tables)


@pytest.mark.parametrize(
    ("computed_ms", "rest_ms", "words"),
    [(45, 40, "a callback computes in C code at"), (30, 40, "a callback waits for I/O at")],
)
def test_both_parts_of_a_call_are_one_stall(computed_ms: int, rest_ms: int, words: str) -> None:
    call = [[computed_ms * MS, COMPUTING, HASHES], [rest_ms * MS, IN_IO, HASHES], [MS, RUNNING, HASHES]]
    [stall] = event_loop.findings(loop(*call * 5))
    assert stall.figures["count"] == 5
    assert stall.figures["longest_ns"] == (computed_ms + rest_ms) * MS
    assert words in stall.title
    assert str(stall.place).endswith("app.py:7 in digest")


def test_calls_at_one_line_are_not_one_stall() -> None:
    calls = [[40 * MS, COMPUTING, HASHES], [MS, RUNNING, HASHES], [40 * MS, IN_IO, HASHES], [MS, RUNNING, HASHES]]
    assert event_loop.findings(loop(*calls * 5)) == []


def test_what_a_line_does_with_and_without_the_gil_is_one_finding() -> None:
    calls = [[60 * MS, RUNNING, HASHES], [90 * MS, COMPUTING, HASHES], [MS, RUNNING, HASHES]]
    [stall] = event_loop.findings(loop(*calls * 4))
    assert (stall.figures["count"], stall.figures["total_ns"]) == (8, 600 * MS)
    assert "a callback computes in C code at" in stall.title


@pytest.mark.parametrize(("code", "count"), [("    return loop.run_until_complete(main())\n", 1), ("    serve()\n", 0)])
def test_a_loop_in_c_is_idle_in_the_line_that_runs_it(tmp_path: Path, code: str, count: int) -> None:
    source = tmp_path / "app.py"
    source.write_text(f"def run(loop):\n{code}")
    run = loop([80 * MS, RUNNING, HASHES])
    in_c = replace(
        run,
        nodes={**run.nodes, IDLE: (0, 9), HASHES: (0, 2)},
        locations={**run.locations, 9: Location(str(source), "run", 2)},
    )
    assert len(event_loop.findings(in_c)) == count


@pytest.mark.parametrize(
    ("idle_in", "runs", "words"),
    [
        ("asyncio/base_events.py", HANDLE, "asyncio.to_thread"),
        ("site-packages/nest_asyncio.py", HANDLE, "asyncio.to_thread"),
        ("site-packages/trio/_core/_io_epoll.py", ("trio/_core/_run.py", "unrolled_run"), "trio.to_thread.run_sync"),
        ("site-packages/gevent/hub.py", None, "gevent.monkey.patch_all"),
        ("site-packages/eventlet/hubs/poll.py", None, "eventlet.monkey_patch"),
        (
            "site-packages/twisted/internet/epollreactor.py",
            ("twisted/internet/base.py", "ReactorBase.mainLoop"),
            "deferToThread",
        ),
    ],
)
def test_the_remedy_is_one_of_the_loop_s_own_library(idle_in: str, runs: tuple[str, str] | None, words: str) -> None:
    calls = [[80 * MS, IN_IO, HASHES], [MS, RUNNING, HASHES]] * 3
    [stall] = event_loop.findings(loop(*calls, idle_in=idle_in, runs=runs))
    assert stall.remedy is not None
    assert words in stall.remedy.what
    assert ("asyncio" in stall.remedy.what) == ("asyncio" in idle_in)


def test_a_hub_that_sleeps_without_a_socket_is_idle() -> None:
    stretches = [[80 * MS, SLEEPING, IDLE], [80 * MS, SLEEPING, HASHES]] * 3
    [stall] = event_loop.findings(loop(*stretches, idle_in="eventlet/hubs/poll.py", runs=None))
    assert stall.figures["count"] == 3
    assert "a callback sleeps at" in stall.title


def test_a_callback_that_waits_in_a_selector_of_its_own_is_a_stall() -> None:
    run = loop(*[[80 * MS, IN_IO, 7], [MS, RUNNING, HASHES]] * 3)
    [stall] = event_loop.findings(replace(run, nodes={**run.nodes, 7: (HASHES, 1)}))
    assert "a callback waits for I/O at" in stall.title


IS_IDLE = [100 * MS, IN_IO, IDLE]


@pytest.mark.parametrize(
    ("node", "rest", "count"),
    [
        (AFTER, [], 0),
        (AFTER, [IS_IDLE], 0),  # between two loops
        (UNKNOWN, [], 0),
        (UNKNOWN, [IS_IDLE], 1),
        (IN_GREENLET, [], 0),
        (IN_GREENLET, [IS_IDLE], 1),
        (HASHES, [], 1),
    ],
)
def test_what_a_thread_does_after_its_loop_is_no_stall(node: int, rest: list[list[int]], count: int) -> None:
    assert len(event_loop.findings(loop([900 * MS, RUNNING, node], *rest))) == count


ROUND = Location("/usr/lib/python3/asyncio/base_events.py", "BaseEventLoop._run_once", 2000)
BEGIN, STALL = 1000 * MS, 900 * MS


@pytest.mark.parametrize(
    ("rounds", "count"),
    [
        (LoopRounds(), 1),  # not watched
        (LoopRounds(LENGTH, {0: 0}), 0),
        (LoopRounds(LENGTH, {1: 0}), 1),  # another thread's are watched
        (LoopRounds(LENGTH, {0: 0}, [LongRound(0, BEGIN, BEGIN + STALL, STALL)]), 1),
        (LoopRounds(LENGTH, {0: 0}, [LongRound(0, BEGIN, BEGIN + STALL, event_loop.STALL_NS)]), 1),
        (LoopRounds(LENGTH, {0: 0}, [LongRound(0, BEGIN, BEGIN + STALL, event_loop.STALL_NS - 1)]), 0),  # no processor
        (LoopRounds(LENGTH, {0: 0}, [LongRound(0, BEGIN - 50 * MS, BEGIN + 20 * MS, 70 * MS)]), 0),
        (LoopRounds(LENGTH, {0: 0, 1: 0}, [LongRound(1, BEGIN, BEGIN + STALL, STALL)]), 0),  # another thread's
        (LoopRounds(BEGIN + STALL // 2, {0: 0}), 1),  # killed: the end was not watched
        (LoopRounds(LENGTH, {0: BEGIN + MS}), 1),  # attached in the middle of a round
    ],
)
def test_short_rounds_are_no_stall_however_long_the_thread_computes(rounds: LoopRounds, count: int) -> None:
    run = loop([STALL, RUNNING, HASHES])
    run = replace(run, locations={**run.locations, 3: ROUND}, loop_rounds=rounds)
    assert len(event_loop.findings(run)) == count


@pytest.mark.parametrize("node", [UNKNOWN, IN_GREENLET])
@pytest.mark.parametrize("long", [[], [LongRound(0, BEGIN, BEGIN + STALL, STALL)]])
def test_a_stack_without_the_lines_of_the_loop_is_one_in_a_round(node: int, long: list[LongRound]) -> None:
    """Such a stack was cut, or read while a coroutine ended."""
    run = replace(loop([STALL, RUNNING, node], IS_IDLE), loop_rounds=LoopRounds(LENGTH, {0: 0}, long))
    assert len(event_loop.findings(run)) == len(long)


def test_a_stretch_of_many_rounds_stalls_the_loop_for_the_long_ones_only() -> None:
    long = [
        LongRound(0, BEGIN + 100 * MS, BEGIN + 180 * MS, 80 * MS),
        LongRound(0, BEGIN + 300 * MS, BEGIN + 360 * MS, 60 * MS),
    ]
    rounds = LoopRounds(LENGTH, {0: 0}, long)
    run = loop([STALL, RUNNING, HASHES])
    [stall] = event_loop.findings(replace(run, locations={**run.locations, 3: ROUND}, loop_rounds=rounds))
    assert (stall.figures["count"], stall.figures["total_ns"], stall.figures["longest_ns"]) == (2, 140 * MS, 80 * MS)


@pytest.mark.parametrize(
    ("state", "detail"),
    [
        (RUNNING, ["the thread had no processor for 600 ms of it"]),
        (IN_IO, []),  # a thread that is in I/O needs none
    ],
)
def test_a_stall_is_told_apart_from_the_lack_of_a_processor(state: int, detail: list[str]) -> None:
    rounds = LoopRounds(LENGTH, {0: 0}, [LongRound(0, BEGIN, BEGIN + STALL, 300 * MS)])
    run = loop([STALL, state, HASHES])
    [stall] = event_loop.findings(replace(run, locations={**run.locations, 3: ROUND}, loop_rounds=rounds))
    assert stall.figures["total_ns"] == STALL
    assert stall.details == ["all other tasks of the loop wait meanwhile", *detail]


def test_the_rounds_of_a_loop_that_is_not_asyncio_s_own_are_not_watched() -> None:
    stretches = [[STALL, RUNNING, HASHES], IS_IDLE]
    run = loop(*stretches, idle_in="twisted/internet/epollreactor.py", runs=("twisted/internet/base.py", "x.mainLoop"))
    assert len(event_loop.findings(replace(run, loop_rounds=LoopRounds(LENGTH, {0: 0})))) == 1


def test_each_stack_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[int] = []

    def examine(_: Process, node: int) -> bool:
        examined.append(node)
        return True

    monkeypatch.setattr(event_loop, "is_below_loop", examine)
    event_loop.findings(loop(*[[MS, RUNNING, HASHES], [MS, RUNNING, AFTER]] * 50))
    assert sorted(examined) == [IDLE, HASHES, AFTER]
