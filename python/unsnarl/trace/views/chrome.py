"""A trace as Chrome's trace-event JSON, which ui.perfetto.dev and viztracer open.

Each stretch of a thread and each import is one complete event (``"ph": "X"``); metadata events carry
the names. Times are microseconds of CLOCK_MONOTONIC, so that the processes of a program line up. The
format is Google's "Trace Event Format".

Invariant: two events of one track are disjoint or nested, since Perfetto drops events that overlap
otherwise. So imports, which span many states of their thread, have a track of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from unsnarl.trace.model import STATES, Process

NAMES = {
    "running": "running",
    "waiting": "waiting for the GIL",
    "lock": "blocked on a lock",
    "io": "blocked in I/O",
    "sleeping": "sleeping",
    "computing": "C code without the GIL",
}
COLOURS = {
    "running": "thread_state_running",
    "waiting": "terrible",
    "lock": "bad",
    "io": "thread_state_iowait",
    "sleeping": "thread_state_sleeping",
    "computing": "thread_state_runnable",
}

IMPORTS = 1 << 22
"""Added to a thread's number for the track of its imports; Linux gives no thread such a
number (PID_MAX_LIMIT in include/linux/threads.h)."""

Event = dict[str, Any]


def write(processes: list[Process], stream: IO[str]) -> None:
    """Write one event per line, so that the events are not held in memory a second time."""
    stream.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
    mark = ""
    for process in processes:
        for line in _lines(process):
            stream.write(mark + line)
            mark = ",\n"
    stream.write("\n]}\n")


def _lines(process: Process) -> Iterator[str]:
    """Yield the events of a process as JSON; of half a million stretches, only the numbers are formatted one by one."""
    command = " ".join(process.command) or "python"
    yield _json({"ph": "M", "name": "process_name", "pid": process.pid, "tid": 0, "args": {"name": command}})
    states: dict[tuple[int, int], str] = {}
    for thread in process.threads:
        head = {"pid": process.pid, "tid": thread.tid}
        yield _json({"ph": "M", "name": "thread_name", **head, "args": {"name": thread.label}})
        start = _json({"ph": "X", **head})[:-1]
        for begin, length, state, node in thread.stretches:
            if (state, node) not in states:
                states[state, node] = _json(_state(process, state, node))[1:]
            begin += process.started_ns  # noqa: PLW2901
            yield f'{start},"ts":{begin / 1000},"dur":{length / 1000},{states[state, node]}'
    for event in _imports(process):
        yield _json(event)


def _json(event: Event) -> str:
    return json.dumps(event, separators=(",", ":"))


def _imports(process: Process) -> Iterator[Event]:
    named: set[int] = set()
    for entry in process.imports:
        thread = process.threads[entry.thread] if entry.thread < len(process.threads) else None
        head = {"pid": process.pid, "tid": IMPORTS + (0 if thread is None else thread.tid)}
        if head["tid"] not in named:
            named.add(head["tid"])
            label = "imports" if thread is None else f"{thread.label} imports"
            yield {"ph": "M", "name": "thread_name", **head, "args": {"name": label}}
        yield {
            "ph": "X",
            **head,
            **_times(process, entry.begin_ns, entry.total_ns),
            "name": f"import {entry.name}",
            "cat": "import",
        }


def _times(process: Process, begin_ns: int, length_ns: int) -> Event:
    return {"ts": (process.started_ns + begin_ns) / 1000, "dur": length_ns / 1000}


def _state(process: Process, state: int, node: int) -> Event:
    name = STATES[state]
    event: Event = {"name": NAMES[name], "cat": "gil", "cname": COLOURS[name]}
    stack = process.stack(node)
    if stack:
        event["args"] = {"stack": [str(line) for line in stack]}
    return event
