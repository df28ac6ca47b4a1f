"""Counts the rounds of event loops before which a task gave way: it is ready again at once, so the loop never waits.

Such a round may take a few microseconds, less than it takes to read a stack from outside. Must never: import a module
from a file, keep a task or a frame alive, or raise into the program.
"""

import sys

from unsnarl.trace.traced.task_stacks import DEPTH, guarded, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from unsnarl.trace.traced.task_stacks import Line

ENTRY = "gives"
"""The first field of an entry: a thread, how many rounds were looked at, before how many a task gave way, its lines."""

MOST_READY = 32
"""What is ready in a loop and looked at in one sample."""

MOST_STACKS = 256
"""Stacks that are told apart."""


class GivingWay:
    """What has been seen so far, by the kernel's number of the loop's thread."""

    __slots__ = ("_counts", "_seen")

    def __init__(self) -> None:
        """Start without a round."""
        self._seen: dict[int, int] = {}
        self._counts: dict[tuple[int, tuple[Line, ...]], int] = {}

    def __bool__(self) -> bool:
        """Whether a round was looked at."""
        return bool(self._seen)

    def note(self, loop: "Any") -> None:
        """Look at a loop of asyncio that is about to make a round for which something is ready."""
        self.add(_stacks_of(loop))

    def add(self, stacks: "Iterable[tuple[Line, ...]]") -> None:
        """Count a round of this thread's loop, and the stacks of the tasks that gave way before it."""
        import _thread

        tid = _thread.get_native_id()
        self._seen[tid] = self._seen.get(tid, 0) + 1
        for stack in set(stacks):
            key = (tid, stack)
            if key in self._counts or len(self._counts) < MOST_STACKS:
                self._counts[key] = self._counts.get(key, 0) + 1

    def entries(self) -> "Iterable[tuple[tuple[str, ...], tuple[Line, ...]]]":
        """Return the fields of each entry but its lines, and these."""
        for (tid, stack), count in list(self._counts.items()):
            yield (ENTRY, str(tid), str(self._seen[tid]), str(count)), stack


def _stacks_of(loop: "Any") -> "Iterable[tuple[Line, ...]]":
    """Return the lines of tasks that are ready in a loop of asyncio, and wait for nothing that has come to its end."""
    try:
        asyncio_tasks: Any = sys.modules["asyncio.tasks"]
        kinds = (asyncio_tasks.Task, asyncio_tasks._PyTask)
        ready = [handle._callback for handle, _ in zip(loop._ready, range(MOST_READY), strict=False)]
    except (AttributeError, KeyError, RuntimeError, TypeError):
        return ()  # a loop of another kind, or another thread has just added a callback
    callers = [getattr(step, "__self__", None) for step in ready if type(step).__module__ in ("_asyncio", "builtins")]
    tasks = [task for task in callers if issubclass(type(task), kinds)]
    return [stack for stack in (_stack_of(task, kinds) for task in tasks) if stack]


def _stack_of(task: "Any", kinds: "tuple[type, ...]") -> "tuple[Line, ...] | None":
    """Return the lines of a task that has begun and waits for no future; None of another one."""
    coroutine: Any = task.get_coro() if type(task) in kinds else guarded(lambda task: task.get_coro(), task)
    if task._fut_waiter is not None or not _is_suspended(coroutine):
        return None
    return tuple(lines_of(coroutine)[:DEPTH]) or None


def _is_suspended(coroutine: object) -> bool:
    """Tell whether a coroutine or generator of Python has begun, and has not ended."""
    if type(coroutine).__module__ != "builtins":
        return False
    return bool(getattr(coroutine, "cr_suspended", False) or getattr(coroutine, "gi_suspended", False))
