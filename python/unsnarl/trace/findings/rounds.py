"""Findings about event loops that go round without a pause, because a task gives way instead of waiting.

``await asyncio.sleep(0)`` in a loop makes the task ready at once, so the loop never waits in its selector. Pure: a
``Process`` in, findings out.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from unsnarl.trace import loops, source
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, share
from unsnarl.trace.model import RUNNING, Location, Process

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_NS = 100_000_000
"""The least time with the GIL of such a loop."""

LEAST_SHARE = 0.2
"""The least share of the thread's life."""

OWN_SHARE = 0.6
"""The least share of that time that is the loop's own: less is the work of callbacks, which may give way meanwhile."""

GIVING_SHARE = 0.002
"""The least share of that time in which a task just gives way: a small part of a round, and most readings of it fail.

On an idle machine a round of a single task takes 4 µs, less than to read its stack: of eight recordings of a second,
three to five show it at all.
"""

_OWN_FILES = (
    *("asyncio/base_events.py", "asyncio/events.py", "/selectors.py"),
    *("trio/_core/_run.py", "trio/_core/_instrumentation.py", "trio/_core/_io_epoll.py", "trio/_core/_traps.py"),
    *("trio/_core/_entry_queue.py", "trio/_timeouts.py", "outcome/_impl.py", "anyio/_core/_eventloop.py"),
)
"""The ends of the files whose functions are a loop's own work in a round, and the way in and out of a task."""

_OWN_FUNCTIONS = frozenset(
    ("sleep", "__sleep0", "AsyncIOBackend.sleep", "TrioBackend.sleep", "BaseSelectorEventLoop._process_events")
)
_SLEEPS_FOR_NOTHING = re.compile(r"\bawait [\w.]*sleep\(0(?:\.0*)?\)")
_STARTS = ("BaseEventLoop.create_task", "Nursery.start_soon", "GenericNursery.start_soon", "Runner.spawn_impl")
"""Functions in _OWN_FILES that a program calls for work of its own: new tasks."""


def findings(process: Process) -> list[Finding]:
    """Return a finding for each thread whose loop goes round because a task gives way."""
    whole: dict[int, int] = defaultdict(int)
    own: dict[int, int] = defaultdict(int)
    giving: dict[int, dict[Location, int]] = defaultdict(lambda: defaultdict(int))
    watched: set[int] = set()
    for number, state, node, time_ns in process.stacks:
        stack = process.stack(node) if state == RUNNING and node else []
        place = process.program_line_of(node) if stack else None
        if place is not None and _gives_way(stack, place):
            giving[number][place] += time_ns
        if loops.is_in_round(stack):
            watched.add(number)
        elif loops.running(stack) is None:
            continue
        whole[number] += time_ns
        own[number] += time_ns if _is_own(stack[0]) else 0
    return [
        _finding(
            process,
            number,
            max(places, key=lambda place: places[place]),
            {"own_ns": own[number], "running_ns": whole[number], "is_watched": number in watched},
        )
        for number, places in giving.items()
        if whole[number] >= max(LEAST_NS, LEAST_SHARE * sum(process.threads[number].totals_ns))
        and own[number] >= OWN_SHARE * whole[number]
        and sum(places.values()) >= GIVING_SHARE * whole[number]
    ]


def _is_own(line: Location) -> bool:
    is_of_loop = line.file.endswith(_OWN_FILES) or line.file.startswith("<attrs generated methods outcome")
    return line.function in _OWN_FUNCTIONS or (is_of_loop and line.function not in _STARTS)


def _gives_way(stack: Sequence[Location], place: Location) -> bool:
    """Tell whether a task makes itself ready again at once, and lets the others run before.

    ``place`` is the program's line. Of a stack that has changed while it was read, the frames beyond the task's are
    missing.
    """
    if _SLEEPS_FOR_NOTHING.search(source.line(place.file, place.line)):
        return True
    for line, caller in itertools.pairwise(stack):
        if line.function == "__sleep0" and line.file.endswith("asyncio/tasks.py"):
            return True
        if line.function == "checkpoint" and line.file.endswith("trio/_core/_run.py"):
            # Many functions of trio have a checkpoint in addition to what they do.
            return caller.file.endswith("trio/_timeouts.py") or caller == place
    return False


def _finding(process: Process, number: int, place: Location, figures: dict[str, int]) -> Finding:
    label, running_ns = process.label(number), figures["running_ns"]
    own = share(figures["own_ns"], running_ns)
    return Finding(
        "rounds",
        SEVERE if 2 * running_ns > process.length_ns else NOTABLE,
        f"the event loop of thread `{label}` goes round without a pause: a task gives way again and again, at {place}",
        [
            f"of {duration(running_ns)} with the GIL, {own} is the loop's own work",
            "a task that gives way is ready again at once, so the loop never waits",
        ],
        label,
        str(place),
        {**figures},
        Remedy(
            "unsnarl will not help here: await what the task waits for (an Event, a Queue, a Future). A task that "
            "computes gives way less often"
        ),
    )
