"""A trace as Chrome's trace-event JSON, which ui.perfetto.dev and viztracer open.

One complete event (``"ph": "X"``) for each stretch of a thread and each import, and
metadata events with the names; times in microseconds of CLOCK_MONOTONIC, so that the
processes of a program line up. The format is Google's "Trace Event Format".
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

Event = dict[str, Any]


def write(processes: list[Process], stream: IO[str]) -> None:
    """Write the events one a line, so that no second copy of them is in memory."""
    stream.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
    mark = ""
    for process in processes:
        for event in events(process):
            stream.write(mark + json.dumps(event, separators=(",", ":")))
            mark = ",\n"
    stream.write("\n]}\n")


def events(process: Process) -> Iterator[Event]:
    """Yield the events of a process."""
    command = " ".join(process.command) or "python"
    yield {"ph": "M", "name": "process_name", "pid": process.pid, "tid": 0, "args": {"name": command}}
    for thread in process.threads:
        head = {"pid": process.pid, "tid": thread.tid}
        yield {"ph": "M", "name": "thread_name", **head, "args": {"name": thread.label}}
        for begin, length, state, node in thread.stretches:
            yield {"ph": "X", **head, **_times(process, begin, length), **_state(process, state, node)}
    for entry in process.imports:
        yield {
            "ph": "X",
            "pid": process.pid,
            "tid": process.threads[entry.thread].tid if entry.thread < len(process.threads) else 0,
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
