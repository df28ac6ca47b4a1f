"""Tasks that give way: as they are noted in the loops, written, read, and found."""

from __future__ import annotations

import asyncio
import socket
import sys
import types
from asyncio import tasks as asyncio_tasks
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.test_trace_findings import LENGTH, thread
from tests.unit.test_trace_views import process
from unsnarl.trace import loops, recordings, task_file, traced
from unsnarl.trace.findings import account, rounds
from unsnarl.trace.loop_rounds import Counted, Looks, LoopRounds
from unsnarl.trace.model import RUNNING, Location, Process
from unsnarl.trace.traced import trio_tasks
from unsnarl.trace.traced.giving_way import AT_ONCE_NS, ENTRY, FINDS, LOOKS, MOST_STACKS, GivingWay
from unsnarl.trace.traced.tasks import END, NEW, SUFFIX, TaskWaits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator


@types.coroutine
def trap() -> Iterator[None]:
    yield


async def give_way() -> None:
    await asyncio.sleep(0)


async def give_way_by_a_trap() -> None:
    await trap()


async def wait(what: asyncio.Future[None]) -> None:
    await what


class RudeTask(asyncio_tasks._PyTask):  # type: ignore[name-defined, misc]
    """A task of the program's own class, which cannot be asked while it is looked at."""

    is_rude = False

    def __getattribute__(self, name: str) -> Any:
        if name in ("get_coro", "_fut_waiter") and type(self).is_rude:
            raise RuntimeError("not now")
        return super().__getattribute__(name)


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
    gathered = Gathered()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = RudeTask(give_way(), loop=loop)
        await asyncio.sleep(0)
        for RudeTask.is_rude in (True, False):
            gathered.note(loop)
        await task

    asyncio.run(main())
    assert gathered.functions == [set(), {"__sleep0"}]


def test_callbacks_and_other_loops_are_no_tasks() -> None:
    gathered = Gathered()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(print).cancel()
        loop.call_soon([].clear)
        loop.call_soon(object().__repr__)
        gathered.note(loop)

    asyncio.run(main())
    gathered.note(types.SimpleNamespace(_ready=None))
    assert gathered.functions == [set(), set()]


def test_the_callbacks_of_ready_sockets_are_noted_after_a_round_that_found_one_at_once() -> None:
    gathered = GivingWay()
    here, there = socket.socketpair()

    def readable() -> None:
        pass

    def writable() -> None:
        pass

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(here, readable)
        loop.add_reader(other[0], [].clear)
        gathered.add_empty(AT_ONCE_NS)
        there.send(b"x")
        gathered.add_empty(AT_ONCE_NS + 1)
        gathered.add_empty(AT_ONCE_NS)
        loop.add_writer(here, writable)
        gathered.add_empty(AT_ONCE_NS)

    with here, there, (other := socket.socketpair())[0], other[1]:
        other[1].send(b"x")
        asyncio.run(main())
    gathered.add_empty(AT_ONCE_NS)  # no loop runs
    found = {stack[0][1].rpartition(".")[2]: fields[2] for fields, stack in gathered.entries() if fields[0] == FINDS}
    assert found == {"readable": "2", "writable": "1"}


def test_stacks_are_bounded() -> None:
    gathered = GivingWay()
    for number in range(2 * MOST_STACKS):
        gathered.add([(("app.py", "spin", number),)])
    (kind, _, ready, *_), _ = next(entries := iter(gathered.entries()))
    assert (kind, ready) == (LOOKS, str(2 * MOST_STACKS))
    assert len(list(entries)) == MOST_STACKS


SLEEP = [Location("/lib/asyncio/tasks.py", "__sleep0", 700), Location("/lib/asyncio/tasks.py", "sleep", 740)]
SPINS, OTHER = Location("/srv/app.py", "spin", 8), Location("/srv/app.py", "other", 9)
HANDLE = Location("/lib/asyncio/events.py", "Handle._run", 89)
ROUND = Location("/usr/lib/python3/asyncio/base_events.py", "BaseEventLoop._run_once", 2000)


def busy_loop(looks: Looks, *giving: Counted, own_ns: int = LENGTH) -> Process:
    """Return a run of one loop that makes rounds all the time; ``own_ns`` is the loop's own work."""
    other = Location("/srv/app.py", "work", 3)
    tables: dict[str, Any] = {
        "locations": {"1": [ROUND.file, ROUND.function, ROUND.line], "2": [other.file, other.function, other.line]},
        "nodes": {"1": [0, 1], "2": [1, 2]},
        "stacks": [[0, RUNNING, 1, own_ns], *([[0, RUNNING, 2, LENGTH - own_ns]] if own_ns < LENGTH else [])],
        "imports": [],
    }
    main = thread(0, "MainThread", running_ns=LENGTH)
    run = process(length_ns=LENGTH, threads=[main], **tables)
    return replace(run, loop_rounds=LoopRounds(giving=list(giving), looks={0: looks}))


def test_a_loop_whose_tasks_give_way_in_most_rounds_is_found_with_the_program_s_line() -> None:
    often, seldom = Counted(0, 30, [*SLEEP, SPINS]), Counted(0, 20, [*SLEEP, OTHER])
    [found] = rounds.findings(busy_loop(Looks(ready=100, gave=50), seldom, often))
    assert (found.kind, found.severity, found.place) == ("rounds", "severe", str(SPINS))
    assert "gives way" in found.title


@pytest.mark.parametrize(
    ("looks", "own_ns"),
    [(Looks(ready=9, gave=9), LENGTH), (Looks(ready=100, gave=100), LENGTH // 2), (Looks(ready=100, gave=49), LENGTH)],
    ids=["too few rounds", "callbacks compute", "in less than half of the rounds"],
)
def test_other_loops_do_not_give_way(looks: Looks, own_ns: int) -> None:
    assert rounds.findings(busy_loop(looks, Counted(0, looks.gave, [*SLEEP, SPINS]), own_ns=own_ns)) == []


def test_the_callback_of_what_is_ready_is_named_where_the_program_has_one() -> None:
    run = called_loop(looks := Looks(empty=100, at_once=100))
    library = Location("/lib/asyncio/selector_events.py", "BaseSelectorEventLoop._read_from_self", 9)
    for found, place in ((SPINS, SPINS), (library, Location("/srv/app.py", "readable", 5))):
        finds = LoopRounds(looks={0: looks}, finds=[Counted(0, 90, [found]), Counted(0, 9, [OTHER])])
        assert rounds.findings(replace(run, loop_rounds=finds))[0].place == str(place)


def called_loop(looks: Looks, *, own_ns: int = LENGTH * 9 // 10) -> Process:
    """Return a run of one loop that calls a function of the program in a small part of its time."""
    callback, runs = Location("/srv/app.py", "readable", 5), Location("/lib/asyncio/events.py", "Handle._run", 89)
    tables: dict[str, Any] = {
        "locations": {
            str(number): [line.file, line.function, line.line]
            for number, line in enumerate((ROUND, runs, callback, SPINS), 1)
        },
        "nodes": {"4": [0, 4], "1": [4, 1], "2": [1, 2], "3": [2, 3]},
        "stacks": [[0, RUNNING, 1, own_ns], [0, RUNNING, 3, LENGTH - own_ns]],
        "imports": [],
    }
    run = process(length_ns=LENGTH, threads=[thread(0, "MainThread", running_ns=LENGTH)], **tables)
    return replace(run, loop_rounds=LoopRounds(looks={0: looks}))


@pytest.mark.parametrize(
    ("looks", "words"),
    [
        (
            Looks(ready=9, empty=100, at_once=50),
            ("severe", "a socket, a file or a timer is ready each time, and it mostly calls"),
        ),
        (Looks(ready=100, empty=99, at_once=99), ("notable", "callbacks and tasks make one another ready, mostly at")),
        (Looks(ready=9, empty=100, at_once=49), None),
    ],
    ids=["something is ready", "callbacks schedule callbacks", "the loop waits"],
)
def test_why_a_loop_goes_round_is_told_by_what_its_rounds_began_with(
    looks: Looks, words: tuple[str, str] | None
) -> None:
    found = [(one.severity, one.title.split(": ", 1)[1]) for one in rounds.findings(called_loop(looks))]
    in_c = replace(run := called_loop(looks), stacks=[*run.stacks, (0, RUNNING, 2, LENGTH)])
    assert rounds.findings(in_c) == []
    assert found == ([(words[0], f"{words[1]} /srv/app.py:5 in readable")] if words else [])
    assert rounds.findings(called_loop(looks, own_ns=LENGTH // 2)) == []


def test_what_a_loop_does_between_callbacks_is_its_own_work_in_the_account() -> None:
    run = called_loop(Looks())
    assert [(part.what, str(part.place)) for part in account.parts_of(run, [0])] == [
        ("computing in the event loop itself", "None"),
        ("computing", "/srv/app.py:5 in readable"),
    ]


@pytest.mark.parametrize(
    ("stack", "is_own"),
    [
        ([ROUND, SPINS], True),
        ([Location("/lib/asyncio/base_events.py", "BaseEventLoop.run_forever", 608), SPINS], True),
        ([Location("/srv/app.py", "sleep", 5), HANDLE, ROUND, SPINS], False),
        ([HANDLE, ROUND, SPINS], False),  # a callback in C
        ([*SLEEP, HANDLE, ROUND, SPINS], True),
    ],
    ids=["a round", "between two", "the program's own sleep", "a callback in C", "a task that gives way"],
)
def test_what_is_a_loop_s_own_work(stack: list[Location], is_own: bool) -> None:
    assert loops.is_own_round(stack) == is_own


def test_what_is_written_is_read_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = TaskWaits()
    sampler._path = str(tmp_path / "one.tasks")
    monkeypatch.setattr("_thread.get_native_id", lambda: busy_loop(Looks()).threads[0].tid)
    sampler._add_giving([(("/srv/app.py", "spin\n", 8), ("<string>", "<module>", 1))])
    sampler._add_giving([])
    sampler._giving.add_empty(AT_ONCE_NS)
    sampler._giving.add_empty(AT_ONCE_NS + 1)
    sampler.end()
    run = busy_loop(Looks())
    text = (tmp_path / "one.tasks").read_text()
    broken = "\ngives\x1f0\x1fmany\nlooks\x1f10\x1f1\nlooks\x1f10\x1f1\x1f2\x1f3\x1f4\x1f5"
    assert task_file.looks(text + broken, run.threads) == {0: Looks(ready=2, gave=1, empty=2, at_once=1)}
    [found] = task_file.counted(text + broken, run.threads, ENTRY)
    assert (found.thread, found.count) == (0, 1)
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
    new.write_text("cut")
    assert recordings._text_of_tasks(recording) is None
    new.write_text(f"new\n{END}")
    assert recordings._text_of_tasks(recording) == f"new\n{END}"
    whole.write_text("whole")
    assert recordings._text_of_tasks(recording) == "whole"


def test_the_file_is_written_by_one_thread_at_a_time(tmp_path: Path) -> None:
    sampler = TaskWaits()
    sampler._path = str(tmp_path / "one.tasks")
    sampler._add_giving([])
    assert (tmp_path / "one.tasks").read_text().endswith(END)
    (tmp_path / "one.tasks").unlink()
    with sampler._writing:
        sampler._write()  # another thread does so
    assert list(tmp_path.iterdir()) == []
    sampler._write()
    assert (tmp_path / "one.tasks").exists()


def test_every_file_that_runs_in_a_loop_is_the_recorder_s() -> None:
    names = {path.stem for path in Path(traced.__file__).parent.glob("*.py")} - {"__init__", "detachment", "recording"}
    assert {Path(name).stem for name in account.RECORDER} == names
