"""Samples what the tasks of event loops wait for where a loop has nothing to run; keeps the long rounds of loops.

A loop that waits in its selector shows none of its tasks. So before such a wait the lines of the tasks are read, and
the wait's length is counted for them. Must never: import a module from a file, keep a task or a frame alive, or raise
into the program. Invariant: once a file is whole, a kill leaves a whole one, under its name or its new one.
"""

import _thread
import os
import sys

from unsnarl import _native
from unsnarl.trace.traced import trio_tasks
from unsnarl.trace.traced.giving_way import GivingWay
from unsnarl.trace.traced.long_rounds import LongRounds
from unsnarl.trace.traced.task_stacks import DEPTH, counted, guarded, lines_of
from unsnarl.trace.traced.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from unsnarl.trace.traced.task_stacks import Line, Wait

SUFFIX = ".tasks"
"""Suffix of the file next to the recording."""

NEW = ".new"
"""What the file's name ends with in addition until the older one is gone."""

END = "end"
"""The last line of a whole file."""

MODULE = "asyncio.base_events"
"""The module of asyncio's loops."""

MODULES = (MODULE, trio_tasks.MODULE)
"""The modules of the loops that are sampled."""

FIELD, LINE_FIELD = "\x1f", "\x1e"
"""Separate the fields of an entry, and those of a line of Python in it."""

MOST_WAITS = 512
"""Stacks of tasks that are distinguished."""

LONGEST_WAIT_S = 1.0
"""How long the end waits for a thread that writes the file."""

FIRST_WRITE_NS, WRITE_NS = 50_000_000, 1_000_000_000
"""The time between the first two writes, which doubles up to the second: a child may end without a last write."""

_INNER_FILES = ("asyncio/locks.py", "asyncio/queues.py", "asyncio/taskgroups.py")
_INNER_FUNCTIONS = ("wait", "_wait", "wait_for", "_wait_for_one")
_INNER_OF_ANYIO = (
    *("TaskGroup.__aexit__", "Lock.acquire", "Semaphore.acquire", "CapacityLimiter.acquire_on_behalf_of"),
    *("Event.wait", "Condition.wait"),
)
"""Where tasks wait for other tasks, and not for something outside of the loop."""


class TaskWaits:
    """What the tasks of this process have waited for so far, and the file that holds it."""

    __slots__ = (
        "_giving",
        "_original",
        "_path",
        "_pause_ns",
        "_rounds",
        "_sampled",
        "_samples",
        "_seen_ns",
        "_timers",
        "_trio",
        "_waits",
        "_write_at_ns",
        "_writing",
    )

    def __init__(self) -> None:
        """Start without a file."""
        self._path = ""
        self._writing = _thread.allocate_lock()
        self._original: Any = None
        self._sampled: _native.SampledRounds | None = None
        self._samples = 0
        self._rounds = LongRounds()
        self._giving = GivingWay()
        self._timers = Timers()
        self._waits: dict[tuple[int, bool, tuple[Line, ...]], list[int]] = {}
        self._seen_ns: dict[int, int] = {}
        self._write_at_ns, self._pause_ns = 0, FIRST_WRITE_NS
        self._trio = trio_tasks.Watch(self.after, self._add_giving)

    def begin(self, recording: str) -> None:
        """Start a new file next to a recording, and sample the loops if there are any."""
        self._path = recording.rpartition(".")[0] + SUFFIX
        self._writing = _thread.allocate_lock()  # a thread that this process has not inherited may hold the other one
        self._waits, self._seen_ns = {}, {}
        self._rounds, self._giving, self._timers = LongRounds(), GivingWay(), Timers()
        self._write_at_ns, self._pause_ns = 0, FIRST_WRITE_NS
        self._watch()
        self._trio.begin()

    def leave(self) -> None:
        """Write no more: the file belongs to the parent of this process."""
        self._path = ""

    def watch_from_import(self, module: str) -> None:
        """Sample the loops of one of MODULES from now on, as it has just been imported: none runs yet."""
        if module == trio_tasks.MODULE:
            self._trio.begin()
            return
        self._watch()
        if self._sampled is not None:
            self._rounds.since_ns = self._sampled.watched()[0]

    def _watch(self) -> None:
        """Sample the loops from now on, if asyncio has been imported."""
        loop = getattr(sys.modules.get(MODULE), "BaseEventLoop", None)
        original = getattr(loop, "__dict__", {}).get("_run_once")
        if loop is None or original is None:
            return
        if isinstance(original, _native.SampledRounds):
            original.forget()  # of the parent that forked this process
            self._sampled = original
            return
        self._original = original
        self._sampled = loop._run_once = _native.SampledRounds(
            original, self.before, self.after, self.giving, self.long
        )

    def end(self) -> None:
        """Stop to sample, and write the file."""
        loop: Any = getattr(sys.modules.get(MODULE), "BaseEventLoop", None)
        if loop is not None and isinstance(loop.__dict__.get("_run_once"), _native.SampledRounds):
            loop._run_once = self._original
        self._trio.end()
        self._write(LONGEST_WAIT_S)

    def before(self, loop: "Any") -> "dict[Wait, int] | None":
        """Return how many tasks of a loop that has nothing to run wait at each stack; None if these cannot be read."""
        import time

        try:
            asyncio_tasks = sys.modules["asyncio.tasks"]
            tasks: list[Any] = list(asyncio_tasks.all_tasks(loop))
            own = (asyncio_tasks.Task, asyncio_tasks.futures.Future, asyncio_tasks._GatheringFuture, type(None))
        except (AttributeError, KeyError, RuntimeError, TypeError):
            return None  # a loop of another kind, or one whose tasks change
        self._samples += 1

        def wait_of(task: "Any") -> "Wait | None":
            is_own = type(task) is own[0] and type(task._fut_waiter) in own
            return _wait_of(task) if is_own else guarded(_wait_of, task)

        waits = counted(tasks, self._samples, wait_of) or {}
        self._timers.expect(loop, tasks, time.monotonic_ns())
        return waits

    def after(self, waits: "dict[Wait, int]", length_ns: int) -> None:
        """Count a wait of the loop for the stacks at which tasks waited meanwhile."""
        # The kernel's number: pthread's is soon that of a later thread.
        tid = _thread.get_native_id()
        self._seen_ns[tid] = self._seen_ns.get(tid, 0) + length_ns
        self._giving.add_empty(length_ns)
        self._timers.add(length_ns)
        outer = sum(count for (is_inner, _), count in waits.items() if not is_inner)
        for (is_inner, lines), count in waits.items():
            key = (tid, is_inner, lines)
            if key not in self._waits and len(self._waits) >= MOST_WAITS:
                continue
            entry = self._waits.setdefault(key, [0, 0, 0, 0])
            entry[0] += 0 if is_inner else length_ns * count // outer
            entry[1] += length_ns * count
            entry[2] += length_ns
            entry[3] = max(entry[3], count)
        self._write_in_time()

    def giving(self, loop: "Any") -> None:
        """Note which tasks of a loop of asyncio give way; something is ready there."""
        self._giving.note(loop)
        self._write_in_time()

    def _add_giving(self, stacks: "Iterable[tuple[Line, ...]]") -> None:
        self._giving.add(stacks)
        self._write_in_time()

    def long(self, tid: int, begin_ns: int, end_ns: int, ran_ns: int) -> None:
        """Keep a long round of a thread's loop, which has just ended."""
        self._rounds.add(tid, begin_ns, end_ns, ran_ns)
        self._write_in_time()

    def _write_in_time(self) -> None:
        import time

        now = time.monotonic_ns()
        if now >= self._write_at_ns:
            self._write_at_ns, self._pause_ns = now + self._pause_ns, min(2 * self._pause_ns, WRITE_NS)
            self._write()

    def _write(self, wait_s: float = 0.0) -> None:
        """Write the file, unless another thread does so; wait for that one for so long in seconds."""
        if not self._path or not (self._waits or self._sampled or self._giving):
            return
        if self._writing.acquire(wait_s > 0, wait_s or -1):
            try:
                self._replace()
            finally:
                self._writing.release()

    def _replace(self) -> None:
        try:
            file = os.open(f"{self._path}{NEW}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, "\n".join((*self._entries(), END)).encode(errors="replace"))
            finally:
                os.close(file)
            # ext4 flushes a file that replaces another one by its rename (auto_da_alloc): on a busy disk the program's
            # loop stood still for 200 ms.
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass  # the first one
            os.rename(f"{self._path}{NEW}", self._path)
        except OSError:
            return  # the directory is gone, or full: the report shows less

    def _entries(self) -> "Iterable[str]":
        if self._sampled is not None:
            yield from map(FIELD.join, self._rounds.entries(*self._sampled.watched()))
        for fields, lines in (*self._giving.entries(), *self._timers.entries()):
            yield FIELD.join((*fields, *_fields_of(lines)))
        for (tid, is_inner, lines), numbers in list(self._waits.items()):
            fields = (str(tid), str(int(is_inner)), *map(str, numbers), str(self._seen_ns[tid]))
            yield FIELD.join((*fields, *_fields_of(lines)))


def _fields_of(lines: "tuple[Line, ...]") -> "list[str]":
    return [LINE_FIELD.join((_plain(file), _plain(function), str(line))) for file, function, line in lines]


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _wait_of(task: "Any") -> "Wait | None":
    """Return whether a task waits for other tasks, and its lines; None if it does not wait.

    No future is asked whether it is done: the loop, which has nothing to run, would have its task to run.
    """
    waiter: object = task._fut_waiter
    if waiter is None:
        return None
    lines = lines_of(task.get_coro())
    if not lines:
        return None
    file, function, _ = lines[0]
    is_inner = (
        hasattr(type(waiter), "get_coro")
        or hasattr(waiter, "_children")
        or file.endswith(_INNER_FILES)
        or (file.endswith("asyncio/tasks.py") and function in _INNER_FUNCTIONS)
        or ("/anyio/" in file and function in _INNER_OF_ANYIO)
    )
    return is_inner, tuple(lines[:DEPTH])
