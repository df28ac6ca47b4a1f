"""Reads the lines at which a suspended task waits, from its coroutine to the innermost one that it awaits.

Must never: import a module from a file, keep a frame or a coroutine alive, or raise into the program.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Answer = TypeVar("Answer")
    Line = tuple[str, str, int]
    Wait = tuple[bool, tuple[Line, ...]]
    """Whether a task waits for other tasks, and its lines, the innermost one first."""

DEPTH = 16
"""Lines of a task that are kept, the innermost ones."""

MOST_TASKS = 1000
"""Tasks that one sample reads: ten thousand would keep the loop from its work for tens of milliseconds."""


def guarded(ask: "Callable[[Any], Answer | None]", thing: "Any") -> "Answer | None":
    """Return what is asked of an object of the program's own class; None if it raises, which may be anything.

    An exception of a signal's handler is lost if it is raised just here. So no other object is asked here.
    """
    try:
        return ask(thing)
    except Exception:  # noqa: BLE001 -- the program's classes may raise any
        return None


def own_kinds() -> "tuple[type, ...]":
    """Return asyncio's own classes of tasks, which need no guard."""
    asyncio_tasks: Any = sys.modules["asyncio.tasks"]
    return asyncio_tasks.Task, asyncio_tasks._PyTask


def counted(tasks: "list[Any]", turn: int, wait_of: "Callable[[Any], Wait | None]") -> "dict[Wait, int] | None":
    """Return how many tasks wait at each stack; None if none does.

    Of many tasks, a part is read that is another one in each turn, and stands for all of them.
    """
    stride = -(-len(tasks) // MOST_TASKS)
    result: dict[Wait, int] = {}
    for task in tasks[turn % stride :: stride] if stride else ():
        wait = wait_of(task)
        if wait is not None:
            result[wait] = result.get(wait, 0) + stride
    return result or None


def lines_of(coroutine: "Any") -> "list[Line]":
    """Return the lines at which a coroutine is suspended, the innermost one first; none if it is not."""
    lines: list[Line] = []
    while coroutine is not None and len(lines) < 4 * DEPTH:
        is_own = type(coroutine).__module__ == "builtins"
        step = _step(coroutine) if is_own else guarded(_step, coroutine)
        if step is None:
            break
        line, coroutine = step
        lines.append(line)
    lines.reverse()
    return lines


def _step(coroutine: object) -> "tuple[Line, Any] | None":
    """Return the line at which a coroutine waits, and what it awaits there; None if it is none, or has ended."""
    kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(type(coroutine), f"{kind}_frame")), None)
    frame: Any = getattr(coroutine, f"{kind}_frame") if kind else None
    if frame is None:
        return None
    code = frame.f_code
    line = (code.co_filename, code.co_qualname, frame.f_lineno or 0)
    return line, getattr(coroutine, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)
