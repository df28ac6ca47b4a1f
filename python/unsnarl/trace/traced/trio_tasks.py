"""Samples what the tasks of trio's loops wait for, and which give way, by one of trio's instruments.

Must never: take more than a hundredth of a loop's time, keep a task or a frame alive, or raise into the program.
Invariant: between two samples lies the longer of LEAST_PAUSE_NS and a hundred times what the last one took.
"""

import sys
import time

from unsnarl.trace.traced.giving_way import MOST_READY
from unsnarl.trace.traced.task_stacks import DEPTH, counted, lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from unsnarl.trace.traced.task_stacks import Line, Wait

    After = Callable[[dict[Wait, int], int], None]
    Giving = Callable[[list[tuple[Line, ...]]], None]

MODULE = "trio._core._run"
"""The module of trio's loop; its global `Instruments` makes the instruments of one run."""

LEAST_PAUSE_NS, PAUSE_SHARE = 5_000_000, 100

_BELOW = ("trio/_core/_traps.py", "trio/_core/_parking_lot.py", "trio/_core/_generated_run.py")
"""The ends of the files in which every wait of trio ends: they tell nothing about what a task waits for."""

_GIVING = ("trio/_core/_traps.py", "trio/_core/_run.py", "trio/_timeouts.py")
"""The ends of the files whose functions lie between a task that gives way and trio's loop."""

_GIVES = "cancel_shielded_checkpoint"
"""The function of _traps.py at which a task gives way."""

_INNER = (
    ("trio/_sync.py", ("Event.wait", "CapacityLimiter.acquire_on_behalf_of", "Semaphore.acquire")),
    ("trio/_sync.py", ("Lock.acquire", "_LockImpl.acquire", "Condition.wait")),
    ("trio/_channel.py", ("MemorySendChannel.send", "MemoryReceiveChannel.receive")),
    ("trio/_core/_run.py", ("Nursery._nested_child_finished", "NurseryManager.__aexit__")),
)
"""Where tasks wait for other tasks, and not for something outside of the loop."""


class Sampler:
    """The instrument of one run of trio, which samples until ``watch`` ends."""

    __slots__ = ("_after", "_began_ns", "_busy_due_ns", "_due_ns", "_giving", "_samples", "_waits", "_watch")

    def __init__(self, watch: "Watch", after: "After", giving: "Giving") -> None:
        """Start without a sample.

        ``after`` gets what the tasks waited for, and for how many nanoseconds the loop then waited; ``giving`` the
        lines of the tasks that gave way before a round for which something is ready.
        """
        self._watch, self._after, self._giving = watch, after, giving
        self._began_ns = self._due_ns = self._busy_due_ns = self._samples = 0
        self._waits: dict[Wait, int] | None = None

    def before_io_wait(self, timeout: float) -> None:
        """Read what the tasks wait for, or which gave way if one can run; not if the last sample is too near."""
        now_ns = time.monotonic_ns()
        self._waits = None
        if now_ns < (self._due_ns if timeout > 0 else self._busy_due_ns) or not self._watch.is_on:
            return
        if timeout <= 0:
            self._read_ready()
            self._busy_due_ns = _next(now_ns, time.monotonic_ns())
            return
        self._waits = self._read()
        self._began_ns = time.monotonic_ns()
        self._due_ns = _next(now_ns, self._began_ns)

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 -- trio's interface
        """Count the wait."""
        if self._waits is not None and self._watch.is_on:
            self._after(self._waits, time.monotonic_ns() - self._began_ns)
            self._waits = None

    def _read(self) -> "dict[Wait, int] | None":
        """Return how many tasks of the program wait at each stack; None if none does."""
        try:
            runner = sys.modules[MODULE].GLOBAL_RUN_CONTEXT.runner
            if runner.is_guest:
                return None  # another loop runs on this thread, and is not idle when trio's is
            tasks = [task for task in runner.tasks if task is runner.main_task or not _is_of_trio(task, runner)]
            self._samples += 1
            return counted(tasks, self._samples, lambda task: _wait_of(lines_of(task.coro)))
        except (AttributeError, KeyError, TypeError):
            return None  # another version of trio

    def _read_ready(self) -> None:
        """Tell the lines of the tasks that can run because they gave way."""
        try:
            runner = sys.modules[MODULE].GLOBAL_RUN_CONTEXT.runner
            ready = [task.coro for task, _ in zip(runner.runq, range(MOST_READY), strict=False)]
        except (AttributeError, KeyError, RuntimeError, TypeError):
            return  # another version of trio
        stacks = [tuple(lines[:DEPTH]) for lines in map(lines_of, ready) if _gives_way(lines)]
        self._giving(stacks)


def _gives_way(lines: "list[Line]") -> bool:
    """Tell whether a task only gives way: many functions of trio do so after what they are for."""
    above = [file for file, _, _ in lines if not file.endswith(_GIVING)]
    gives = any(function == _GIVES and file.endswith(_GIVING) for file, function, _ in lines)
    return gives and bool(above) and "/trio/_" not in above[0]


def _next(began_ns: int, ended_ns: int) -> int:
    """Return when the next sample is due after one that took from ``began_ns`` to ``ended_ns``."""
    return ended_ns + max(LEAST_PAUSE_NS, PAUSE_SHARE * (ended_ns - began_ns))


def _is_of_trio(task: "Any", runner: "Any") -> bool:
    """Tell whether a task is trio's first one, or one of its system tasks, which are children of the first."""
    return task is runner.init_task or task.parent_nursery.parent_task is runner.init_task


def _wait_of(lines: "list[Line]") -> "Wait | None":
    above = [line for line in lines if not line[0].endswith(_BELOW)]
    if not above:
        return None
    file, function, _ = above[0]
    is_inner = any(file.endswith(name) and function in functions for name, functions in _INNER)
    return is_inner, tuple(above[:DEPTH])


class Watch:
    """Gives each run of trio a sampler from now on, until its end."""

    __slots__ = ("_after", "_giving", "_original")

    def __init__(self, after: "After", giving: "Giving") -> None:
        """``after`` and ``giving`` are called on the thread of a loop, as ``Sampler`` has it."""
        self._after, self._giving = after, giving
        self._original: Any = None

    def begin(self) -> None:
        """Start, if trio has been imported and this is not yet done."""
        module: Any = sys.modules.get(MODULE)
        original = getattr(module, "Instruments", None)
        if original is None or self._original is not None:
            return
        self._original = original
        module.Instruments = self._instruments

    def end(self) -> None:
        """Give no more samplers."""
        module: Any = sys.modules.get(MODULE)
        if self._original is not None and getattr(module, "Instruments", None) == self._instruments:
            module.Instruments = self._original
        self._original = None

    @property
    def is_on(self) -> bool:
        """Whether runs are to be sampled."""
        return self._original is not None

    def _instruments(self, incoming: "Any") -> "Any":
        made = self._original(incoming)
        if hasattr(made, "add_instrument"):
            made.add_instrument(Sampler(self, self._after, self._giving))
        return made
