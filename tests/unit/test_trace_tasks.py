"""What tasks of an event loop wait for: as it is sampled, written, read, and found."""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_trace_findings import LENGTH, MS, thread
from tests.unit.test_trace_views import process
from unsnarl.trace import task_file
from unsnarl.trace.findings import account, explained, tasks
from unsnarl.trace.findings.finding import NOTABLE, Finding
from unsnarl.trace.model import Location, Process, TaskWaits
from unsnarl.trace.traced import tasks as sampled
from unsnarl.trace.traced import trio_tasks
from unsnarl.trace.traced.task_stacks import MOST_TASKS
from unsnarl.trace.traced.tasks import FIELD, LINE_FIELD, SUFFIX
from unsnarl.trace.traced.tasks import TaskWaits as Sampler

ACQUIRE = Location("/lib/asyncio/locks.py", "Lock.acquire", 105)
WAITS, HOLDS = Location("/srv/app.py", "ask", 8), Location("/srv/app.py", "ask", 9)


def idle_loop(*waits: TaskWaits) -> Process:
    """Return a run of one loop that is idle for nearly all of its time."""
    tables: dict[str, Any] = {
        "locations": {
            "1": ["/lib/selectors.py", "EpollSelector.select", 441],
            "2": ["/lib/asyncio/base_events.py", "run_once", 9],
        },
        "nodes": {"1": [2, 1], "2": [0, 2]},
        "stacks": [[0, 3, 1, LENGTH]],
        "imports": [],
    }
    main = thread(0, "MainThread", io_ns=LENGTH)
    return replace(process(length_ns=LENGTH, threads=[main], **tables), tasks=list(waits))


def waits_for(stack: list[Location], *, is_inner: bool, idle_ns: int, most: int = 1) -> TaskWaits:
    return TaskWaits(0, is_inner, idle_ns, LENGTH * most, LENGTH, most, LENGTH, stack)


LOCKED = waits_for([ACQUIRE, WAITS], is_inner=True, idle_ns=0, most=7)
HOLDING = waits_for([Location("/lib/asyncio/streams.py", "readline", 5), HOLDS], is_inner=False, idle_ns=LENGTH)


def test_a_lock_is_found_with_the_line_at_which_its_holder_waits() -> None:
    [found] = tasks.findings(idle_loop(LOCKED, HOLDING))
    assert (found.kind, found.severity, found.place) == ("task-waits", "severe", str(HOLDS))
    assert found.figures["most"] == 7
    assert found.figures["waits_at"] == str(WAITS)


@pytest.mark.parametrize(
    "waits",
    [
        replace(LOCKED, waited_ns=LENGTH // 20),
        waits_for([Location("/lib/asyncio/queues.py", "Queue.get", 160), WAITS], is_inner=True, idle_ns=0, most=7),
        waits_for([Location("/srv/locks.py", "Lock.acquire", 3)], is_inner=True, idle_ns=0, most=7),
    ],
    ids=["for a short time", "for work", "for a class of the program"],
)
def test_other_waits_are_no_finding(waits: TaskWaits) -> None:
    assert tasks.findings(idle_loop(waits, HOLDING)) == []


def test_idle_time_is_divided_among_the_lines_that_keep_the_loop_waiting() -> None:
    other = Location("/srv/app.py", "tick", 3)
    small = Location("/srv/app.py", "log", 4)
    shares = [(HOLDS, 70), (other, 25), (small, 5)]
    waits = [waits_for([line], is_inner=False, idle_ns=LENGTH * share // 100) for line, share in shares]
    parts = account.parts_of(idle_loop(LOCKED, *waits), [0])
    assert {(part.place, part.time_ns) for part in parts} == {
        (HOLDS, LENGTH * 70 // 100),
        (other, LENGTH * 25 // 100),
        (None, LENGTH * 5 // 100),
    }
    assert parts[0].words == "idle in the event loop while tasks wait in `ask` (app.py:9)"


def test_entries_that_cannot_be_read_are_skipped() -> None:
    line = LINE_FIELD.join(("/srv/app.py", "ask", "9"))
    whole = FIELD.join(("10", "0", "5", "6", "7", "2", "8", line))
    foreign = FIELD.join(("99", "0", "5", "6", "7", "2", "8", line))
    text = "\n".join((whole, foreign, whole[:-12], "", "x" + FIELD + "y", whole + FIELD + "cut"))
    assert task_file.parse(text, idle_loop().threads) == [TaskWaits(0, False, 5, 6, 7, 2, 8, [HOLDS])]


def test_a_wait_is_one_of_the_kernel_s_thread() -> None:
    """The C library gives the number of a thread that has ended to the next one."""
    first = idle_loop().threads[0]
    text = FIELD.join((str(first.tid), "0", "5", "6", "7", "2", "8", LINE_FIELD.join(("/srv/app.py", "ask", "9"))))
    [waits] = task_file.parse(text, [first, replace(first, tid=first.tid + 1)])
    assert waits.thread == 0


async def one_holds_and_two_wait(sampler: Sampler) -> dict[Any, int]:
    """Return a sample of three tasks that share a lock, and one that waits for them."""

    async def hold(lock: asyncio.Lock) -> None:
        async with lock:
            await asyncio.sleep(60)

    lock = asyncio.Lock()
    holders = [asyncio.create_task(hold(lock)) for _ in range(3)]
    waiting = asyncio.ensure_future(asyncio.wait(holders))
    for _ in range(3):
        await asyncio.sleep(0)
    found = sampler.before(asyncio.get_running_loop())
    for task in (waiting, *holders):
        task.cancel()
    return found or {}


def test_a_sample_distinguishes_who_waits_for_a_task_and_who_keeps_the_loop_waiting(tmp_path: Path) -> None:
    sampler = Sampler()
    sampler.begin(str(tmp_path / "7-1.trace"))
    try:
        found = asyncio.run(one_holds_and_two_wait(sampler))
        sampler.after(found, 4 * MS)
    finally:
        sampler.end()
    names = {(is_inner, lines[0][1]): count for (is_inner, lines), count in found.items()}
    assert names == {(True, "Lock.acquire"): 2, (False, "sleep"): 1, (True, "_wait"): 1}
    threads = [replace(idle_loop().threads[0], tid=threading.get_native_id())]
    text = (tmp_path / f"7-1{SUFFIX}").read_text()
    read = {waits.stack[0].function: waits for waits in task_file.parse(text, threads)}
    assert read["sleep"].most == 1
    assert (read["Lock.acquire"].idle_ns, read["Lock.acquire"].most) == (0, 2)


async def many_wait(sampler: Sampler, count: int) -> list[dict[Any, int]]:
    """Return some samples of many tasks, of which one waits elsewhere."""

    async def ask() -> None:
        await asyncio.sleep(60)

    async def once() -> None:
        await asyncio.sleep(60)

    tasks = [asyncio.create_task(once()), *(asyncio.create_task(ask()) for _ in range(count - 1))]
    for _ in range(3):
        await asyncio.sleep(0)
    found = [sampler.before(asyncio.get_running_loop()) or {} for _ in range(3)]
    for task in tasks:
        task.cancel()
    return found


def test_of_many_tasks_another_part_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of them stands for all."""
    read: list[Any] = []
    original: Any = vars(sampled)["_wait_of"]

    def wait_of(task: Any) -> Any:
        read.append(task)
        return original(task)

    monkeypatch.setattr(sampled, "_wait_of", wait_of)
    found = asyncio.run(many_wait(Sampler(), 2 * MOST_TASKS + 9))
    assert len(read) <= 3 * MOST_TASKS
    assert all(abs(sum(sample.values()) - len(read)) < 9 for sample in found)
    elsewhere = [sum(count for (_, lines), count in sample.items() if "once" in lines[-1][1]) for sample in found]
    assert sorted(elsewhere) == [0, 0, 3]


class Rude:
    """A future and a coroutine of a program's own class, which answers questions about anything else with an error."""

    _asyncio_future_blocking = False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def add_done_callback(self, callback: Any, **_: Any) -> None:
        self.callback = callback

    def cancel(self, *_: Any, **__: Any) -> bool:
        asyncio.get_running_loop().call_soon(self.callback, self)
        return True

    def result(self) -> None:
        return None

    def done(self) -> bool:
        raise RuntimeError("not now")

    @property
    def cr_frame(self) -> None:
        raise RuntimeError("no frame")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if "callback" in self.__dict__:
            raise StopIteration
        self._asyncio_future_blocking = True
        return self


async def rude_and_polite(sampler: Sampler) -> dict[Any, int]:
    async def ask(what: Any) -> None:
        await what

    tasks = [asyncio.create_task(ask(what)) for what in (Rude(), asyncio.sleep(60))]
    for _ in range(3):
        await asyncio.sleep(0)
    found = sampler.before(asyncio.get_running_loop())
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return found or {}


def test_a_future_that_raises_when_it_is_asked_does_not_end_the_loop() -> None:
    found = asyncio.run(rude_and_polite(Sampler()))
    assert [lines[0][1] for _, lines in found] == ["sleep"]


class Instruments:
    """Stands for trio's own: it keeps what one run was given."""

    def __init__(self, incoming: Any) -> None:
        self.incoming = list(incoming)

    def add_instrument(self, instrument: Any) -> None:
        self.incoming.append(instrument)


def run_of_trio(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Any:
    """Put a module in the place of trio's, with a run whose main task and two children wait at lines of this file."""
    trio: Any = types.ModuleType(trio_tasks.MODULE)
    init = types.SimpleNamespace(coro=None, parent_nursery=None)
    of_init, of_main = (types.SimpleNamespace(parent_task=parent) for parent in (init, None))
    waiting = [suspended() for _ in range(4)]
    tasks = [types.SimpleNamespace(coro=coro, parent_nursery=of_main) for coro in waiting[:2]]
    main, system = (types.SimpleNamespace(coro=coro, parent_nursery=of_init) for coro in waiting[2:])
    every = {"init_task": init, "main_task": main, "tasks": [init, main, system, *tasks], "is_guest": False} | changes
    trio.GLOBAL_RUN_CONTEXT = types.SimpleNamespace(runner=types.SimpleNamespace(**every))
    trio.Instruments = Instruments
    monkeypatch.setitem(sys.modules, trio_tasks.MODULE, trio)
    return trio


def suspended() -> Any:
    @types.coroutine
    def trap() -> Any:
        yield

    async def wait() -> None:
        await trap()

    coroutine = wait()
    coroutine.send(None)
    return coroutine


def test_each_run_of_trio_is_sampled_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    trio = run_of_trio(monkeypatch)
    watch = trio_tasks.Watch(lambda _waits, _length: None, lambda _stacks: None)
    watch.begin()
    watch.begin()  # of a child that was forked
    assert [type(one) for one in trio.Instruments([7]).incoming] == [int, trio_tasks.Sampler]
    with pytest.raises(TypeError, match="'NoneType' object is not iterable"):
        trio.Instruments(None)
    watch.end()
    assert trio.Instruments is Instruments


def test_a_run_of_trio_that_outlives_the_recording_is_sampled_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    trio = run_of_trio(monkeypatch)
    seen: list[int] = []
    watch = trio_tasks.Watch(lambda _waits, length_ns: seen.append(length_ns), lambda _stacks: None)
    watch.begin()
    [sampler] = trio.Instruments([]).incoming
    sampler.before_io_wait(1.0)
    watch.end()
    sampler.after_io_wait(1.0)
    assert seen == []


@pytest.mark.parametrize(
    ("changes", "timeout", "tasks"),
    [
        ({}, 1.0, 3),  # the main task and two others, without trio's own
        ({}, 0, 0),  # a task can run
        ({"is_guest": True}, 1.0, 0),  # another loop runs on the thread
        ({"tasks": None}, 1.0, 0),  # another version of trio
    ],
)
def test_tasks_of_trio_are_counted_for_the_wait_of_their_loop(
    changes: dict[str, Any], timeout: float, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trio = run_of_trio(monkeypatch, **changes)
    seen: list[tuple[dict[Any, int], int]] = []
    watch = trio_tasks.Watch(lambda waits, length_ns: seen.append((waits, length_ns)), lambda _stacks: None)
    watch.begin()
    [sampler] = trio.Instruments([]).incoming
    sampler.before_io_wait(timeout)
    sampler.after_io_wait(timeout)
    assert sum(sum(waits.values()) for waits, _ in seen) == tasks
    assert all(lines[0][1].endswith("trap") for waits, _ in seen for _, lines in waits)
    sampler.before_io_wait(timeout)  # too near
    sampler.after_io_wait(timeout)
    assert len(seen) == bool(tasks)


ANYIO, TRIO = "/venv/lib/python3.13/site-packages/anyio/_backends/_asyncio.py", "/venv/lib/site-packages/trio/_sync.py"
EVENT = Location("/lib/python3.13/asyncio/locks.py", "Event.wait", 213)


@pytest.mark.parametrize(
    ("stack", "what"),
    [
        ([Location(TRIO, "_LockImpl.acquire", 600)], "a lock"),
        ([Location(TRIO, "CapacityLimiter.acquire_on_behalf_of", 340)], "a token of a limiter"),
        ([EVENT, Location(ANYIO, "CapacityLimiter.acquire_on_behalf_of", 1800)], "a token of a limiter"),
        ([Location(TRIO.replace("_sync", "_channel"), "MemorySendChannel.send", 240)], "room in a channel"),
        ([Location("/srv/own.py", "Lock.acquire", 1)], None),  # the program's own class
        ([EVENT, Location("/srv/own.py", "Lock.acquire", 1)], None),
        (
            [
                Location(TRIO, "CapacityLimiter.acquire_on_behalf_of", 340),
                Location(TRIO.replace("_sync", "_threads"), "to_thread_run_sync", 350),
            ],
            "a token of a limiter",
        ),
    ],
)
def test_what_tasks_of_other_libraries_wait_for(stack: list[Location], what: str | None) -> None:
    waits = TaskWaits(0, True, 0, LENGTH, LENGTH, 2, LENGTH, [*stack, WAITS])
    found = tasks.findings(idle_loop(waits))
    assert [finding.title.startswith(f"tasks wait for {what} at /srv/app.py:8 in ask") for finding in found] == [
        True
    ] * (what is not None)


def test_waits_for_the_workers_of_a_full_pool_are_told_once() -> None:
    limiter = Location(TRIO, "CapacityLimiter.acquire_on_behalf_of", 340)
    in_thread = Location(TRIO.replace("_sync", "_threads"), "to_thread_run_sync", 350)
    worker, other = (
        tasks.findings(idle_loop(waits_for([limiter, *stack, WAITS], is_inner=True, idle_ns=0, most=2)))
        for stack in ([in_thread], [])
    )
    pool = [Finding("full-pool", NOTABLE, "all 2 workers are busy")]
    assert [len(explained.without_explained([*found])) for found in (worker, other)] == [1, 1]
    assert [len(explained.without_explained([*found, *pool])) for found in (worker, other)] == [1, 2]
