"""A trace as one self-contained HTML file that needs no network: data, style and script are embedded.

The templates are next to this module: ``report.html``, ``report.css`` and the scripts. ``document`` has their frame.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unsnarl.trace.findings import startup as findings_startup
from unsnarl.trace.findings.finding import Finding, duration
from unsnarl.trace.findings.locks import is_for_work
from unsnarl.trace.model import LockWaits, Process
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.thread_groups import groups_of
from unsnarl.trace.views.document import document, embedded
from unsnarl.trace.views.stretches import UNIT_NS, encoded, kinds_of

HERE = Path(__file__).parent
MAX_LOCK_ROWS = 60
SCRIPTS = ("report.js", "flame.js", "timeline.js")
"""The page's script, in this order: one program in three files."""


def page(processes: list[Process], findings: list[Finding], syscalls: Syscalls) -> str:
    """Return the page."""
    command = " ".join(processes[0].command) or "python"
    title = f"{command} · unsnarl trace"
    data = {
        "title": title,
        "processes": [_process(process, syscalls) for process in processes],
        "findings": [asdict(finding) for finding in findings],
        "syscalls": syscalls.summary(),
    }
    parts = {
        "@SCRIPT@": "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "@DATA@": embedded(data),
    }
    return document(title, HERE, "report", parts)


def _process(process: Process, syscalls: Syscalls) -> dict[str, Any]:
    before, first_line = findings_startup.start_ns(process)
    kinds = {kind: index for index, kind in enumerate(kinds_of(process))}
    sampled: dict[int, list[int]] = defaultdict(list)
    for number, time_ns, node in process.sampled:
        sampled[number] += (time_ns, node)
    return {
        "pid": process.pid,
        "command": " ".join(process.command) or "python",
        "about": about(process),
        "note": note(process),
        "length_ns": process.length_ns,
        "threads": [
            {
                "name": thread.label,
                "totals": list(thread.totals_ns),
                "longest_wait_ns": thread.longest_wait_ns,
                "s": encoded(thread.stretches, kinds),
                "sampled": sampled.get(number, []),
            }
            for number, thread in enumerate(process.threads)
        ],
        "groups": [(group.label, group.numbers) for group in groups_of(process)],
        **_places(process, {node for _, node in kinds}),
        "kinds": list(kinds),
        "unit_ns": UNIT_NS,
        "stacks": process.stacks,
        "histogram": process.histogram,
        "rates": asdict(process.rates),
        "wakeups": [asdict(group) for group in process.wakeups],
        "locks": [_lock(process, waits) for waits in process.locks[:MAX_LOCK_ROWS]],
        "imports": [
            {
                "name": entry.name,
                "parent": entry.parent,
                "total_ns": entry.total_ns,
                "self_ns": entry.self_ns,
            }
            for entry in process.imports
        ],
        "start": {
            "before_ns": before,
            "first_line_ns": first_line,
            "calls": [asdict(call) for call in syscalls.during_imports(process)],
        },
    }


def _places(process: Process, used: set[int]) -> dict[str, Any]:
    """Return the nodes of the page's stacks, each with its parent and the index of its line, and these lines.

    ``used`` are those of the stretches.
    """
    used = used | {node for _, _, node in process.sampled} | {node for _, _, node, _ in process.stacks}
    nodes: dict[str, tuple[int, int]] = {}
    lines: dict[int, int] = {}
    for node in used:
        while node in process.nodes and str(node) not in nodes:
            parent, location = process.nodes[node]
            nodes[str(node)] = parent, lines.setdefault(location, len(lines))
            node = parent  # noqa: PLW2901
    return {"nodes": nodes, "lines": [str(process.locations.get(location, "")) for location in lines]}


def _lock(process: Process, waits: LockWaits) -> dict[str, Any]:
    held_at = process.line_of(waits.holder_node) or process.line_of(waits.release_node)
    held = "" if waits.releaser is None else process.label(waits.releaser) + (f", {held_at}" if held_at else "")
    return {
        "waits_at": str(process.line_of(waits.wait_node) or "not recorded: too short"),
        "thread": process.label(waits.waiter) + and_others(waits.waiters - 1),
        "held": held,
        "count": waits.count,
        "total_ns": waits.total_ns,
        "longest_ns": waits.longest_ns,
        "for_work": is_for_work(process, waits.wait_node),
    }


def and_others(count: int) -> str:
    """Return the words that follow the first of several names."""
    return f" and {count} {'other' if count == 1 else 'others'}" if count else ""


def about(process: Process) -> str:
    """Return a line that describes a process."""
    words = [
        process.interpreter,
        f"process {process.pid}",
        "with the scheduler" if process.is_scheduled else "stock scheduling",
        duration(process.length_ns),
        f"{process.thread_count:,} {'thread' if process.thread_count == 1 else 'threads'}",
    ]
    if not process.is_complete:
        words.append("the recording has no regular end: the process was killed, or ended by os._exit")
    return " · ".join(words)


def note(process: Process) -> str:
    """Return in words what the timeline omits."""
    notes: list[str] = []
    if process.resolution_ns:
        notes.append(f"Stretches below {duration(process.resolution_ns)} are merged.")
    if process.overwritten or process.lost:
        lost = process.overwritten + process.lost
        notes.append(f"{lost:,} older records were replaced by newer ones; totals cover the whole run.")
    if process.stacks_left_out:
        notes.append(f"{process.stacks_left_out:,} stacks were not taken, to keep the cost low.")
    return " ".join(notes)
