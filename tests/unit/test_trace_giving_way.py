"""Tasks that give way: as they are noted in the loops, written, read, and found."""

from __future__ import annotations

import asyncio
import sys
import types
from asyncio import tasks as asyncio_tasks
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace import recordings, task_file
from unsnarl.trace.findings import account, rounds
from unsnarl.trace.loop_rounds import GivingWay as Noted
from unsnarl.trace.loop_rounds import LoopRounds
from unsnarl.trace.model import RUNNING, Location, Process
from unsnarl.trace.traced import trio_tasks
from unsnarl.trace.traced.giving_way import MOST_STACKS, GivingWay
from unsnarl.trace.traced.tasks import NEW, SUFFIX, TaskWaits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path


@types.coroutine
def trap() -> Iterator[None]:
    yield


async def give_way() -> None:
    await asyncio.sleep(0)


async def give_way_by_a_trap() -> None:
    await trap()


async def wait(what: asyncio.Future[None]) -> None:
    await what


class OwnTask(asyncio.Task[None]):
    """A task of the program's own class, which cannot be asked."""

    def get_coro(self) -> Any:
        raise RuntimeError("not now")


class Gathered(GivingWay):
    """Keeps the functions of the innermost lines, of each round."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[set[str]] = []

    def add(self, stacks: Any) -> None:
        made = list(stacks)
        self.functions.append({stack[0][1].rpartition(".")[2] for stack in made})
        super().add(made)


def noted(*make: Callable[[], Coroutine[Any, Any, None]], task: Any = asyncio.Task) -> set[str]:
    """Return the innermost functions of the tasks that have begun, and are found to give way."""
    gathered = Gathered()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        every = [task(each(), loop=loop) for each in make]
        gathered.note(loop)  # none has begun
        await asyncio.sleep(0)
        gathered.note(loop)
        await asyncio.wait(every)

    asyncio.run(main())
    assert gathered.functions[0] == set()
    return gathered.functions[1]


@pytest.mark.parametrize("task", [asyncio_tasks.Task, asyncio_tasks._PyTask])  # type: ignore[attr-defined]
def test_a_task_that_gives_way_is_noted(task: Any) -> None:
    assert noted(give_way, task=task) == {"__sleep0"}
    assert noted(give_way_by_a_trap, task=task) == {"trap"}


def test_a_task_that_was_woken_is_not_noted() -> None:
    gathered = Gathered()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        event: asyncio.Future[None] = loop.create_future()
        waiting = loop.create_task(wait(event))
        await asyncio.sleep(0)
        event.set_result(None)  # the task is ready from the next round on
        loop.call_soon(gathered.note, loop)
        await waiting

    asyncio.run(main())
    assert gathered.functions == [set()]


def test_a_task_that_cannot_be_asked_ends_no_loop() -> None:
    assert noted(give_way, task=OwnTask) == set()


def test_callbacks_and_other_loops_are_no_tasks() -> None:
    gathered = Gathered()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        handle = loop.call_soon(print)
        handle.cancel()
        loop.call_soon(gathered.functions.clear)
        gathered.note(loop)

    asyncio.run(main())
    gathered.note(types.SimpleNamespace(_ready=None))
    assert gathered.functions == [set()]


def test_stacks_are_bounded() -> None:
    gathered = GivingWay()
    for number in range(2 * MOST_STACKS):
        gathered.add([(("app.py", "spin", number),)])
    entries = list(gathered.entries())
    assert len(entries) == MOST_STACKS
    assert {fields[2] for fields, _ in entries} == {str(2 * MOST_STACKS)}


SLEEP = [Location("/lib/asyncio/tasks.py", "__sleep0", 700), Location("/lib/asyncio/tasks.py", "sleep", 740)]
SPINS = Location("/srv/app.py", "spin", 8)
ROUND = Location("/usr/lib/python3/asyncio/base_events.py", "BaseEventLoop._run_once", 2000)


def busy_loop(*giving: Noted, own_ns: int = LENGTH) -> Process:
    """Return a run of one loop that makes rounds all the time; ``own_ns`` is the loop's own work."""
    other = Location("/srv/app.py", "work", 3)
    tables: dict[str, Any] = {
        "locations": {"1": [ROUND.file, ROUND.function, ROUND.line], "2": [other.file, other.function, other.line]},
        "nodes": {"1": [0, 1], "2": [1, 2]},
        "stacks": [[0, RUNNING, 1, own_ns], [0, RUNNING, 2, LENGTH - own_ns]],
        "imports": [],
    }
    main = thread(0, "MainThread", running_ns=LENGTH)
    run = process(length_ns=LENGTH, threads=[main], **tables)
    return replace(run, loop_rounds=LoopRounds(giving=list(giving)))


def test_a_loop_whose_tasks_give_way_in_most_rounds_is_found_with_the_program_s_line() -> None:
    [found] = rounds.findings(busy_loop(Noted(0, 100, 50, [*SLEEP, SPINS])))
    assert (found.kind, found.thread, found.place) == ("rounds", "MainThread", str(SPINS))


def called_loop(takes: int, *, own_ns: int = LENGTH * 9 // 10) -> Process:
    """Return a run of one loop that calls a function of the program in a small part of its time."""
    callback, runs = Location("/srv/app.py", "readable", 5), Location("/lib/asyncio/events.py", "Handle._run", 89)
    tables: dict[str, Any] = {
        "locations": {
            str(number): [line.file, line.function, line.line]
            for number, line in enumerate((ROUND, runs, callback, SPINS), 1)
        },
        "nodes": {"4": [0, 4], "1": [4, 1], "2": [1, 2], "3": [2, 3]},
        "stacks": [[0, RUNNING, 1, own_ns // 2], [0, RUNNING, 2, own_ns // 2], [0, RUNNING, 3, LENGTH - own_ns]],
        "imports": [],
    }
    return process(
        length_ns=LENGTH,
        threads=[thread(0, "MainThread", running_ns=LENGTH) | {"takes": takes, "lock_waits": 0}],
        **tables,
    )


OFTEN = rounds.LOOKS_PER_S * LENGTH // 1_000_000_000


def test_a_loop_that_always_finds_something_ready_is_found_with_what_it_calls() -> None:
    [found] = rounds.findings(called_loop(OFTEN))
    assert (found.kind, found.place) == ("rounds", "/srv/app.py:5 in readable")
    run = called_loop(OFTEN)
    assert [(part.what, str(part.place)) for part in account.parts_of(run, [0])] == [
        ("computing in the event loop itself", "None"),
        ("computing", "/srv/app.py:5 in readable"),
    ]
    run = replace(run, loop_rounds=LoopRounds(giving=[Noted(0, 100, 80, [*SLEEP, SPINS])]))
    assert rounds.findings(run)[0].place == str(SPINS)


@pytest.mark.parametrize("run", [called_loop(OFTEN - 1), called_loop(OFTEN, own_ns=LENGTH // 2)])
def test_a_loop_that_waits_or_computes_in_callbacks_is_not_found(run: Process) -> None:
    assert rounds.findings(run) == []


@pytest.mark.parametrize(
    "run",
    [
        busy_loop(Noted(0, 100, 49, [*SLEEP, SPINS])),
        busy_loop(Noted(0, 9, 9, [*SLEEP, SPINS])),
        busy_loop(Noted(0, 100, 100, [*SLEEP, SPINS]), own_ns=LENGTH // 2),
    ],
    ids=["in less than half of the rounds", "too few rounds", "callbacks compute"],
)
def test_other_loops_are_not_found(run: Process) -> None:
    assert rounds.findings(run) == []


def test_what_is_written_is_read_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = TaskWaits()
    sampler._path = str(tmp_path / "one.tasks")
    monkeypatch.setattr("_thread.get_native_id", lambda: busy_loop().threads[0].tid)
    sampler._add_giving([(("/srv/app.py", "spin\n", 8), ("<string>", "<module>", 1))])
    sampler._add_giving([])
    sampler.end()
    run = busy_loop()
    text = (tmp_path / "one.tasks").read_text()
    [found] = task_file.giving_way(text + "\ngives\x1f0\x1fmany", run.threads)
    assert (found.thread, found.looked_at, found.count) == (0, 2, 1)
    assert found.stack == [Location("/srv/app.py", "spin?", 8), Location("<string>", "<module>", 1)]
    assert task_file.parse(text, run.threads) == []


TRAPS, RUN = "/venv/trio/_core/_traps.py", "/venv/trio/_core/_run.py"


def coroutine(*lines: tuple[str, str]) -> Any:
    """Return a suspended coroutine with such files and functions, the innermost first."""
    innermost: Any = None
    for file, function in lines:
        source = f"async def {function}(what):\n await what\n" if innermost else f"def {function}(what):\n yield\n"
        scope: dict[str, Any] = {}
        exec(compile(source, file, "exec"), scope)
        innermost = scope[function](innermost) if innermost else types.coroutine(scope[function])(None)
    innermost.send(None)
    return innermost


@pytest.mark.parametrize(
    ("lines", "is_noted"),
    [
        (
            [(TRAPS, "_async_yield"), (TRAPS, "cancel_shielded_checkpoint"), (RUN, "checkpoint"), ("app.py", "spin")],
            True,
        ),
        (
            [
                (TRAPS, "_async_yield"),
                (TRAPS, "cancel_shielded_checkpoint"),
                (RUN, "checkpoint"),
                ("/venv/trio/_timeouts.py", "sleep"),
                ("app.py", "spin"),
            ],
            True,
        ),
        ([(TRAPS, "_async_yield"), (TRAPS, "wait_task_rescheduled"), ("app.py", "spin")], False),
        (
            [
                (TRAPS, "_async_yield"),
                (TRAPS, "cancel_shielded_checkpoint"),
                (RUN, "checkpoint"),
                ("/venv/trio/_socket.py", "send"),
                ("app.py", "x"),
            ],
            False,
        ),
    ],
    ids=["a checkpoint", "sleep(0)", "woken", "an operation's own checkpoint"],
)
def test_a_task_of_trio_that_gives_way_is_noted(
    lines: list[tuple[str, str]], is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trio: Any = types.ModuleType(trio_tasks.MODULE)
    ready = [types.SimpleNamespace(coro=coroutine(*lines))]
    trio.GLOBAL_RUN_CONTEXT = types.SimpleNamespace(runner=types.SimpleNamespace(runq=ready))
    monkeypatch.setitem(sys.modules, trio_tasks.MODULE, trio)
    seen: list[Any] = []
    watch = trio_tasks.Watch(lambda _waits, _length: None, seen.append)
    watch._original = trio
    sampler = trio_tasks.Sampler(watch, lambda _waits, _length: None, seen.append)
    sampler.before_io_wait(0)
    sampler.before_io_wait(0)  # too near
    [stacks] = seen
    assert [stack[-1][1] for stack in stacks] == ([lines[-1][1]] if is_noted else [])


def test_a_process_that_is_killed_while_it_replaces_its_file_leaves_the_new_one(tmp_path: Path) -> None:
    recording = tmp_path / "7-1.trace"
    whole, new = (tmp_path / f"7-1{suffix}" for suffix in (SUFFIX, SUFFIX + NEW))
    assert recordings._text_of_tasks(recording) is None
    new.write_text("new")
    assert recordings._text_of_tasks(recording) == "new"
    whole.write_text("whole")
    assert recordings._text_of_tasks(recording) == "whole"
