"""Counts the rounds of event loops before which a task gave way: it is ready again at once, so the loop never waits.

Such a round may take a few microseconds, less than it takes to read a stack from outside. Must never: import a module
from a file, keep a task or a frame alive, or raise into the program.
"""

import _thread
import sys

from unsnarl.trace.traced.task_stacks import DEPTH, guarded, lines_of, own_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from unsnarl.trace.traced.task_stacks import Line

ENTRY = "gives"
"""The first field of an entry: a thread, before how many rounds a task gave way there, and its lines."""

LOOKS = "looks"
"""The first field of what was seen of a thread's loop: the thread, and the counts of `Looks`."""

FINDS = "finds"
"""The first field of an entry: a thread, after how many rounds a socket or file was ready, and its callback."""

AT_ONCE_NS = 50_000
"""A round of at most this length has not waited: something was ready, a socket or a timer."""

MOST_READY = 32
"""What is ready in a loop and looked at in one sample."""

MOST_THREADS = 1024
"""Threads whose rounds are counted."""

MOST_STACKS = 256
"""Stacks that are told apart."""


class Looks:
    """The rounds of a thread's loop that were looked at.

    Attributes:
        ready: those for which something was ready when they began.
        gave: those of them before which a task gave way.
        empty: those for which nothing was ready when they began, so they looked for sockets and timers.
        at_once: those of them that then found something at once.
    """

    __slots__ = ("at_once", "empty", "gave", "ready")

    def __init__(self) -> None:
        """Start without a round."""
        self.ready = self.gave = self.empty = self.at_once = 0

    def fields(self) -> "tuple[str, ...]":
        """Return the counts, in the order of the attributes."""
        return str(self.ready), str(self.gave), str(self.empty), str(self.at_once)


class GivingWay:
    """What has been seen so far, by the kernel's number of the loop's thread."""

    __slots__ = ("_counts", "_finds", "_looks")

    def __init__(self) -> None:
        """Start without a round."""
        self._finds: dict[tuple[int, tuple[Line, ...]], int] = {}
        self._looks: dict[int, Looks] = {}
        self._counts: dict[tuple[int, tuple[Line, ...]], int] = {}

    def __bool__(self) -> bool:
        """Whether a round was looked at."""
        return bool(self._looks)

    def note(self, loop: "Any") -> None:
        """Look at a loop of asyncio that is about to make a round for which something is ready."""
        self.add(_stacks_of(loop))

    def add(self, stacks: "Iterable[tuple[Line, ...]]") -> None:
        """Count a round of this thread's loop, and the stacks of the tasks that gave way before it."""
        tid, looks = self._own()
        gave = set(stacks)
        looks.ready += 1
        looks.gave += bool(gave)
        _count(self._counts, tid, gave)

    def add_empty(self, length_ns: int) -> None:
        """Count a round of this thread's loop for which nothing was ready when it began, and which took so long."""
        tid, looks = self._own()
        looks.empty += 1
        if length_ns <= AT_ONCE_NS:
            looks.at_once += 1
            _count(self._finds, tid, {(callback,) for callback in _found_ready()})

    def _own(self) -> "tuple[int, Looks]":
        """Return this thread and its counts, which are not told of threads beyond the bound."""
        tid = _thread.get_native_id()
        if tid not in self._looks and len(self._looks) >= MOST_THREADS:
            return tid, Looks()
        return tid, self._looks.setdefault(tid, Looks())

    def entries(self) -> "Iterable[tuple[tuple[str, ...], tuple[Line, ...]]]":
        """Return the fields of each entry but its lines, and these."""
        for tid, looks in list(self._looks.items()):
            yield (LOOKS, str(tid), *looks.fields()), ()
        for kind, counts in ((ENTRY, self._counts), (FINDS, self._finds)):
            for (tid, stack), count in list(counts.items()):
                yield (kind, str(tid), str(count)), stack


def _count(counts: "dict[tuple[int, tuple[Line, ...]], int]", tid: int, stacks: "Iterable[tuple[Line, ...]]") -> None:
    for stack in stacks:
        key = (tid, stack)
        if key in counts or len(counts) < MOST_STACKS:
            counts[key] = counts.get(key, 0) + 1


def _found_ready() -> "list[Line]":
    """Return the callbacks of what is ready for this thread's loop of asyncio, after a round that has called them."""
    try:
        loop: Any = sys.modules["asyncio.events"]._get_running_loop()
        selector = loop._selector
        if type(selector).__module__ != "selectors":
            return []
        handles = [handle for key, mask in selector.select(0)[:MOST_READY] for handle in _handles(key.data, mask)]
        return [line for line in (_first_line(handle._callback) for handle in handles) if line is not None]
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return []  # a loop of another kind


def _handles(data: "Any", mask: int) -> "list[Any]":
    """Return the handles of the loop for the events of a socket: to read is 1, to write is 2."""
    reader, writer = data
    return [handle for handle, event in ((reader, 1), (writer, 2)) if handle is not None and mask & event]


def _first_line(callback: "Any") -> "Line | None":
    """Return the first line of a function or method of Python; None of anything else."""
    if type(callback).__module__ != "builtins":
        return None
    code = getattr(getattr(callback, "__func__", callback), "__code__", None)
    return None if code is None else (code.co_filename, code.co_qualname, code.co_firstlineno)


def _stacks_of(loop: "Any") -> "Iterable[tuple[Line, ...]]":
    """Return the lines of tasks that are ready in a loop of asyncio, and wait for nothing that has come to its end."""
    try:
        kinds = own_kinds()
        ready = [handle._callback for handle, _ in zip(loop._ready, range(MOST_READY), strict=False)]
    except (AttributeError, KeyError, RuntimeError, TypeError):
        return ()  # a loop of another kind, or another thread has just added a callback
    callers = [getattr(step, "__self__", None) for step in ready if type(step).__module__ in ("_asyncio", "builtins")]
    tasks = [task for task in callers if issubclass(type(task), kinds)]
    stacks = [_stack_of(task) if type(task) in kinds else guarded(_stack_of, task) for task in tasks]
    return [stack for stack in stacks if stack]


def _stack_of(task: "Any") -> "tuple[Line, ...] | None":
    """Return the lines of a task that has begun and waits for no future; None of another one."""
    coroutine: Any = task.get_coro()
    if task._fut_waiter is not None or not _is_suspended(coroutine):
        return None
    return tuple(lines_of(coroutine)[:DEPTH]) or None


def _is_suspended(coroutine: object) -> bool:
    """Tell whether a coroutine or generator of Python has begun, and has not ended."""
    if type(coroutine).__module__ != "builtins":
        return False
    return bool(getattr(coroutine, "cr_suspended", False) or getattr(coroutine, "gi_suspended", False))
