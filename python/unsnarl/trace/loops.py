"""The event loops that are known, by library: where each waits in its selector, and below what it runs callbacks.

Pure: stacks in, a library out. Every other rule about loops asks here, so that one entry makes a loop known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unsnarl.trace import source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unsnarl.trace.model import Location

_SELECTORS = "selectors.py"
"""The end of the file of the standard library's selectors, in which many loops wait."""

_RUNS_LOOP = ("run_until_complete(", "run_forever(")
"""The calls that run a loop: such a line is the innermost one of a thread in I/O if the loop is in C, as uvloop's."""


_MAKES_ROUNDS, _ROUND, _BETWEEN = "asyncio/base_events.py", "BaseEventLoop._run_once", "BaseEventLoop.run_forever"
"""The end of the file of asyncio's own loops, the function that makes one round, and the one that makes all."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library with an event loop.

    Attributes:
        name: its name.
        selects: the ends of the files whose code is the innermost, but for the standard library's selectors, while the
            loop waits in its selector.
        runs: the end of the file and of the function below which the loop runs each callback; None where a callback has
            a stack of its own, as a greenlet has.
        in_thread: the call that runs a function in a thread, and lets the loop go on.
        patches: the call that lets the standard library's blocking calls switch to other greenlets, or None.
    """

    name: str
    selects: tuple[str, ...]
    runs: tuple[str, str] | None
    in_thread: str
    patches: str | None = None


ASYNCIO = Library(
    "asyncio", (_MAKES_ROUNDS, "nest_asyncio.py"), ("asyncio/events.py", "Handle._run"), "asyncio.to_thread"
)

_IN_C = Library("asyncio", (), None, ASYNCIO.in_thread)
"""A loop of asyncio's interface in C, as uvloop: its callbacks are on no stack."""

LIBRARIES = (
    ASYNCIO,
    Library("trio", ("trio/_core/_io_epoll.py",), ("trio/_core/_run.py", "unrolled_run"), "trio.to_thread.run_sync"),
    Library(
        "gevent",
        ("gevent/hub.py", "gevent/_hub_primitives.py"),
        None,
        "gevent.get_hub().threadpool.apply",
        "gevent.monkey.patch_all()",
    ),
    Library(
        "eventlet",
        ("eventlet/hubs/poll.py", "eventlet/hubs/epolls.py", "eventlet/hubs/selects.py"),
        None,
        "eventlet.tpool.execute",
        "eventlet.monkey_patch()",
    ),
    Library(
        "Twisted",
        ("twisted/internet/epollreactor.py", "twisted/internet/pollreactor.py", "twisted/internet/selectreactor.py"),
        ("twisted/internet/base.py", ".mainLoop"),
        "twisted.internet.threads.deferToThread",
    ),
)


_OWN_FILES = (
    *("asyncio/base_events.py", "asyncio/events.py", "/selectors.py"),
    *("trio/_core/_run.py", "trio/_core/_instrumentation.py", "trio/_core/_io_epoll.py", "trio/_core/_traps.py"),
    *("trio/_core/_entry_queue.py", "trio/_timeouts.py", "outcome/_impl.py", "anyio/_core/_eventloop.py"),
)
"""The ends of the files whose functions are a loop's own work in a round, and the way in and out of a task."""

_OWN_FUNCTIONS = (
    ("asyncio/tasks.py", "sleep"),
    ("asyncio/tasks.py", "__sleep0"),
    ("asyncio/selector_events.py", "BaseSelectorEventLoop._process_events"),
    ("anyio/_backends/_asyncio.py", "AsyncIOBackend.sleep"),
    ("anyio/_backends/_trio.py", "TrioBackend.sleep"),
)
"""The ends of other files, and their functions, of which the same is so."""

_STARTS = ("BaseEventLoop.create_task", "Nursery.start_soon", "GenericNursery.start_soon", "Runner.spawn_impl")
"""Functions in _OWN_FILES that a program calls for work of its own: new tasks."""


def selecting(stack: Sequence[Location]) -> Library | None:
    """Return the library whose loop waits in its selector at a stack, the innermost line first; None if none does.

    A loop in C, as uvloop's, is known by the line that runs it.
    """
    inner = next((line for line in stack if not line.file.endswith(_SELECTORS)), None)
    for library in LIBRARIES:
        if inner is not None and inner.file.endswith(library.selects):
            return library
    if stack and any(call in source.line(stack[0].file, stack[0].line) for call in _RUNS_LOOP):
        return _IN_C
    return None


def running(stack: Sequence[Location]) -> Library | None:
    """Return the library below whose loop a stack's callback runs; None where a callback has a stack of its own."""
    return next((library for library in LIBRARIES if any(_is_run_by(library, line) for line in stack)), None)


def callback(stack: list[Location]) -> list[Location]:
    """Return the lines of a callback below the loop that runs it; the whole stack where none does.

    The lines outside belong to whoever runs the loop, and not to the callback.
    """
    for index, line in enumerate(stack):
        if index and any(_is_run_by(library, line) for library in LIBRARIES):
            return stack[:index]
    return stack


def is_own_work(line: Location) -> bool:
    """Tell whether a thread with this innermost line does the work of its loop, and none of a callback."""
    is_of_loop = line.file.endswith(_OWN_FILES) or line.file.startswith("<attrs generated methods outcome")
    own = any(line.function == function and line.file.endswith(file) for file, function in _OWN_FUNCTIONS)
    return own or (is_of_loop and line.function not in _STARTS)


def is_callback_in_c(stack: Sequence[Location]) -> bool:
    """Tell whether a loop of asyncio has called C code at a stack: a callback, or a step into or out of a task."""
    return bool(stack) and _is_run_by(ASYNCIO, stack[0])


def is_in_loop(stack: Sequence[Location]) -> bool:
    """Tell whether a thread with the GIL makes a round of a loop, or is between two."""
    is_between = bool(stack) and stack[0].function == _BETWEEN and stack[0].file.endswith(_MAKES_ROUNDS)
    return is_between or is_in_round(stack) or running(stack) is not None


def is_own_round(stack: list[Location]) -> bool:
    """Tell whether a stack is that of a loop between its callbacks, or of one that consists of the loop's own code."""
    return is_in_loop(stack) and not is_callback_in_c(stack) and all(map(is_own_work, _below_loop(stack)))


def _below_loop(stack: list[Location]) -> list[Location]:
    """Return the lines of a callback, or else the innermost one, which is the loop's."""
    lines = callback(stack)
    return stack[:1] if lines is stack else lines


def is_in_round(stack: Sequence[Location]) -> bool:
    """Tell whether a stack is that of a round of asyncio's own loops, whose rounds are watched.

    Between two rounds such a loop may drop the GIL for a moment only, so that many short callbacks make one stretch.
    """
    return any(line.function == _ROUND and line.file.endswith(_MAKES_ROUNDS) for line in stack)


def _is_run_by(library: Library, line: Location) -> bool:
    """Tell whether a line is the one of a library's loop that runs a callback."""
    if library.runs is None:
        return False
    file, function = library.runs
    return line.file.endswith(file) and line.function.endswith(function)
