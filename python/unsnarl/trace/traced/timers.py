"""Counts the waits of asyncio's loops that the timer of a task ends after milliseconds.

Such a task may look again and again whether something has happened, instead of waiting for it. Must
never: import a module from a file, keep a task or a frame alive, or raise into the program.
"""

import _thread
import sys

from unsnarl.trace.traced.task_stacks import DEPTH, guarded, lines_of, own_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from unsnarl.trace.traced.task_stacks import Line

ENTRY = "timed"
"""The first field of an entry: a thread, how many waits a task's timer ended, their nanoseconds, the task's lines."""

WAITS = "waits"
"""The first field of all waits of a thread's loop that were sampled: the thread, their number, their nanoseconds."""

SHORT_NS = 5_000_000
"""The longest wait that is counted for a task: waking up less often costs nothing."""

MOST_STACKS = 256
"""Stacks that are told apart."""

MOST_TASKS = 8
"""Tasks of a stack that are remembered: what many tasks do in turn, none of them does often."""

MOST_THREADS = 1024
"""Threads whose waits are counted."""


class Timers:
    """What has been seen so far, by the kernel's number of the loop's thread."""

    __slots__ = ("_expected", "_tasks", "_timed", "_waits")

    def __init__(self) -> None:
        """Start without a wait."""
        self._expected: dict[int, tuple[int, int, tuple[Line, ...]]] = {}
        self._tasks: dict[tuple[int, tuple[Line, ...]], list[int]] = {}
        self._timed: dict[tuple[int, tuple[Line, ...]], list[int]] = {}
        self._waits: dict[int, list[int]] = {}

    def expect(self, loop: "Any", tasks: "list[Any]", now_ns: int) -> None:
        """Note the timer that is due next in a loop of asyncio that has nothing to run, if it is due soon."""
        tid = _thread.get_native_id()
        self._expected.pop(tid, None)
        try:
            clock: Any = getattr(loop, "time", None)
            if getattr(clock, "__func__", None) is not sys.modules["asyncio.base_events"].BaseEventLoop.time:
                return  # a clock of the program's own
            handle = loop._scheduled[0]
            if handle._cancelled or not now_ns < handle._when * 1e9 <= now_ns + SHORT_NS:
                return
            task = _woken(handle, tasks)
            lines = _lines(task)
        except (AttributeError, IndexError, KeyError, TypeError):
            return  # no timer, or a loop of another kind
        if lines:
            self._expected[tid] = round(handle._when * 1e9) - now_ns, id(task), lines

    def add(self, length_ns: int) -> None:
        """Count a wait of this thread's loop, which has just ended; one for a task only if that was seen before."""
        tid = _thread.get_native_id()
        if tid not in self._waits and len(self._waits) >= MOST_THREADS:
            return
        _count(self._waits.setdefault(tid, [0, 0]), length_ns)
        due_ns, task, lines = self._expected.pop(tid, (0, 0, ()))
        if not due_ns <= length_ns <= 2 * SHORT_NS or not lines:
            return  # it ended before, or lacked a processor
        key = (tid, lines)
        if key not in self._tasks and len(self._tasks) >= MOST_STACKS:
            return
        seen = self._tasks.setdefault(key, [])
        if task in seen:
            _count(self._timed.setdefault(key, [0, 0]), length_ns)
        else:
            self._tasks[key] = [*seen[1 - MOST_TASKS :], task]

    def entries(self) -> "Iterable[tuple[tuple[str, ...], tuple[Line, ...]]]":
        """Return the fields of each entry but its lines, and these."""
        for tid, counts in list(self._waits.items()):
            yield (WAITS, str(tid), *map(str, counts)), ()
        for (tid, lines), counts in list(self._timed.items()):
            yield (ENTRY, str(tid), *map(str, counts)), lines


def _count(counts: "list[int]", length_ns: int) -> None:
    counts[0] += 1
    counts[1] += length_ns


def _woken(handle: "Any", tasks: "list[Any]") -> "Any":
    """Return the task that a timer wakes, of `sleep`, `wait` or `timeout`; None if it is another timer."""
    awaited: object = handle._args[0] if handle._args else None
    if awaited is not None:
        kinds = own_kinds()
        own = (task for task in tasks if type(task) in kinds and task._fut_waiter is awaited)
        return next(own, None)
    timeouts = sys.modules.get("asyncio.timeouts")
    if timeouts is None or type(handle._callback).__module__ != "builtins":
        return None  # an object of the program's own may do anything when it is asked
    caller: Any = getattr(handle._callback, "__self__", None)
    return caller._task if type(caller) is timeouts.Timeout else None


def _lines(task: "Any") -> "tuple[Line, ...]":
    if task is None:
        return ()
    lines = lines_of(task.get_coro()) if type(task) in own_kinds() else guarded(_lines_of, task)
    return tuple((lines or [])[:DEPTH])


def _lines_of(task: "Any") -> "list[Line]":
    return lines_of(task.get_coro())
