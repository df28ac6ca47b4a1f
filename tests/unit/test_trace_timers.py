"""Loops that wake up for a task's timer every few milliseconds: as they are noted inside, written, read, and found."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.test_trace_findings import LENGTH, MS, thread
from tests.unit.test_trace_views import process
from unsnarl.trace import task_file
from unsnarl.trace.findings import timers as timer_findings
from unsnarl.trace.loop_rounds import LoopRounds, Timed
from unsnarl.trace.model import IN_IO, Location, Process
from unsnarl.trace.traced.tasks import TaskWaits
from unsnarl.trace.traced.timers import ENTRY, MOST_STACKS, MOST_TASKS, MOST_THREADS, SHORT_NS, WAITS, Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

DUE_S = 60.0
"""So far in the future that no timer of these tests fires by itself."""


async def sleeps() -> None:
    await asyncio.sleep(DUE_S)


async def waits_for_some() -> None:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=DUE_S)


async def waits_for_one() -> None:
    await asyncio.wait_for(asyncio.get_running_loop().create_future(), DUE_S)


async def has_a_timeout() -> None:
    async with asyncio.timeout(DUE_S):
        await asyncio.get_running_loop().create_future()


class OwnClock(asyncio.SelectorEventLoop):
    """A loop whose clock may be any."""

    def time(self) -> float:
        return super().time()


def expected(
    make: Callable[[], Coroutine[Any, Any, None]],
    *,
    before_ns: int = SHORT_NS - MS,
    length_ns: int = SHORT_NS,
    change: Callable[[Any], object] = lambda _: None,
    loop_factory: type[asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop,
) -> set[str]:
    """Return the program's functions in the stack of the task whose timer is counted.

    The loop is looked at so long before the timer is due, and the wait takes ``length_ns``.
    """
    timers = Timers()

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        task = asyncio.create_task(make())
        await asyncio.sleep(0)
        due_ns = round(loop._scheduled[0]._when * 1e9)
        change(loop)
        for _ in range(2):  # the first time it is not known to come again
            timers.expect(loop, list(asyncio.all_tasks()), due_ns - before_ns)
            timers.add(length_ns)
        task.cancel()
        await asyncio.wait([task])

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    stacks = [stack for fields, stack in timers.entries() if fields[0] == ENTRY]
    return {line[1] for stack in stacks for line in stack if line[0] == __file__}


@pytest.mark.parametrize("make", [sleeps, waits_for_some, waits_for_one, has_a_timeout])
def test_the_task_that_a_timer_wakes_is_found(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    assert expected(make) == {make.__name__}


def test_only_a_timer_that_is_due_soon_and_ends_the_wait_is_counted() -> None:
    assert expected(sleeps, before_ns=SHORT_NS + MS) == set()
    assert expected(sleeps, before_ns=-MS) == set()  # it is due already
    assert expected(sleeps, length_ns=SHORT_NS - 2 * MS) == set()  # something else came before
    assert expected(sleeps, length_ns=2 * SHORT_NS + 1) == set()  # the thread had no processor


def test_other_timers_and_clocks_are_left_alone() -> None:
    assert expected(sleeps, change=lambda loop: loop.call_at(loop._scheduled[0]._when - 1e-3, print)) == set()
    assert expected(sleeps, change=lambda loop: loop._scheduled[0].cancel()) == set()
    assert expected(sleeps, loop_factory=OwnClock) == set()
    timers = Timers()
    timers.expect(SimpleNamespace(), [], time.monotonic_ns())
    timers.add(MS)
    assert [fields[0] for fields, _ in timers.entries()] == [WAITS]


def test_stacks_and_threads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    timers = Timers()
    for number in range(4 * MOST_STACKS):
        timers._expected[threading.get_native_id()] = MS, 1, (("app.py", "polls", number // 2),)
        timers.add(MS)
    for tid in range(2 * MOST_THREADS):
        monkeypatch.setattr("_thread.get_native_id", lambda tid=tid: -tid)
        timers.add(MS)
    kinds = [fields[0] for fields, _ in timers.entries()]
    assert (kinds.count(WAITS), kinds.count(ENTRY)) == (MOST_THREADS, MOST_STACKS)


@pytest.mark.parametrize(("tasks", "counted"), [(1, 63), (MOST_TASKS, 64 - MOST_TASKS), (MOST_TASKS + 1, 0)])
def test_what_many_tasks_of_a_line_do_in_turn_none_of_them_does_often(tasks: int, counted: int) -> None:
    timers = Timers()
    for number in range(64):
        timers._expected[threading.get_native_id()] = MS, number % tasks, (("app.py", "pings", 8),)
        timers.add(MS)
    entries = {fields[0]: int(fields[2]) for fields, _ in timers.entries()}
    assert (entries[WAITS], entries.get(ENTRY, 0)) == (64, counted)


def test_an_object_of_the_program_is_not_asked() -> None:
    class Proxy:
        def __call__(self) -> None: ...

        def __getattr__(self, name: str) -> object:
            raise RuntimeError("outside of a request")

    def change(loop: Any) -> None:
        loop.call_at(loop._scheduled[0]._when - 1e-3, Proxy())

    assert expected(sleeps, change=change) == set()


POLLS = Location("/srv/app.py", "polls", 8)
STACK = [Location("/lib/asyncio/tasks.py", "sleep", 718), POLLS]


def idle_loop(*timed: Timed, idle_ns: int = LENGTH) -> Process:
    """Return a run of one loop that waits in its selector."""
    selector = ["/lib/selectors.py", "EpollSelector.select", 452]
    tables: dict[str, Any] = {
        "locations": {"1": selector, "2": ["/lib/asyncio/base_events.py", "BaseEventLoop._run_once", 1948]},
        "nodes": {"1": [2, 1], "2": [0, 2]},
        "stacks": [[0, IN_IO, 1, idle_ns]],
    }
    run = process(length_ns=LENGTH, threads=[thread(0, "MainThread", io_ns=LENGTH)], **tables)
    return replace(run, loop_rounds=LoopRounds(timed=list(timed)))


@pytest.mark.parametrize(
    ("counts", "whole", "is_found"),
    [
        ((10, 10 * MS), (20, 20 * MS), True),
        ((9, 9 * MS), (9, 9 * MS), False),  # too few to tell
        ((10, 10 * MS), (21, 20 * MS), False),  # most waits are others
        ((10, 10 * MS), (20, 21 * MS), False),  # most of the time passes in others
        ((10, 51 * MS), (10, 51 * MS), False),  # long ones
    ],
)
def test_a_loop_that_mostly_waits_for_a_short_timer_is_found(
    counts: tuple[int, int], whole: tuple[int, int], is_found: bool
) -> None:
    run = idle_loop(Timed(0, *whole, []), Timed(0, *counts, STACK))
    assert [(one.kind, one.place) for one in timer_findings.findings(run)] == (
        [("polling", str(POLLS))] if is_found else []
    )


def test_one_line_is_one_place_whatever_calls_it_and_a_loop_that_hardly_waits_polls_not() -> None:
    entries = [Timed(0, 20, 20 * MS, []), *(Timed(0, 5, 5 * MS, [*STACK, caller]) for caller in (POLLS, STACK[0]))]
    [found] = timer_findings.findings(idle_loop(*entries))
    assert (found.figures["count"], found.figures["mean_ns"], found.figures["total_ns"]) == (10, MS, LENGTH // 2)
    assert timer_findings.findings(idle_loop(*entries, idle_ns=LENGTH // 5)) == []
    assert timer_findings.findings(idle_loop(*entries[1:])) == []


def test_what_is_written_is_read_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = idle_loop()
    monkeypatch.setattr("_thread.get_native_id", lambda: run.threads[0].tid)
    sampler = TaskWaits()
    sampler._path = str(tmp_path / "one.tasks")
    for length_ns in (MS, 2 * MS, 3 * MS):
        sampler._timers._expected[run.threads[0].tid] = MS, 1, (("/srv/app.py", "polls", 8),)
        sampler.after({}, length_ns)
    sampler.end()
    broken = "\nwaits\x1f10\x1f20\x1f0\ntimed\x1f10\x1f0\x1f1\x1fapp.py"
    broken += "\ntimed\x1f10\x1fmany\ntimed\x1f10\x1f1\x1f2\nwaits\x1f99\x1f1\x1f2"
    text = (tmp_path / "one.tasks").read_text() + broken
    assert task_file.timed(text, run.threads) == [Timed(0, 3, 6 * MS, []), Timed(0, 2, 5 * MS, [POLLS])]
    assert task_file.parse(text, run.threads) == []
