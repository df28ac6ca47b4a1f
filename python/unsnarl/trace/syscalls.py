"""Counts the system calls of a traced program with strace, or reports what the kernel accounts without it.

strace stops the program at every call, so it is used only on request (``--syscalls``). It writes one
line per call (``-f -ttt -T``); these give counts, errors and time by call and by thread, and
the calls made during each import. Unparsable lines are skipped.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from unsnarl.trace.model import Process

OPTIONS = ("-f", "-ttt", "-T", "-qq", "-s", "0")
"""Follow threads and children; absolute times, time spent; no messages, no strings."""

FILE_CALLS = frozenset(
    (
        "openat",
        "open",
        "stat",
        "newfstatat",
        "fstat",
        "lstat",
        "statx",
        "getdents64",
        "readlink",
        "readlinkat",
        "access",
    )
)
"""Calls with which an import searches the file system."""

NOT_ASKED = (
    "Not counted in this run: strace stops a program at every call, which would change the figures above. "
    "`unsnarl trace --syscalls` counts them, by call and by thread."
)

_LINE = re.compile(r"^(?:\[pid +)?(?P<tid>\d+)\]? +(?P<time>\d+\.\d+) (?P<what>.*?)(?:<(?P<spent>\d+\.\d+)>)?$")
_CALL = re.compile(r"^(?P<name>\w+)\(")
_RESUMED = re.compile(r"^<\.\.\. (?P<name>\w+) resumed>")
_ERROR = re.compile(r"= -1 E[A-Z]+")


class Call(NamedTuple):
    """One system call: thread, time (CLOCK_REALTIME, seconds), name, duration, and whether it failed."""

    tid: int
    time_s: float
    name: str
    spent_s: float
    has_failed: bool


@dataclass(frozen=True, slots=True)
class CallTotal:
    """All calls of one name."""

    name: str
    calls: int
    errors: int
    time_ns: int
    threads: str = ""


@dataclass(frozen=True, slots=True)
class Syscalls:
    """The system calls of a run, as far as they are known.

    Attributes:
        reason: why there are no counts; empty if there are.
        rows: totals by name, the most time first.
        known: figures that the kernel accounts in any case, in words.
        calls: every single call.
    """

    reason: str = NOT_ASKED
    rows: list[CallTotal] = field(default_factory=list[CallTotal])
    known: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: list[Call] = field(default_factory=list[Call])

    def summary(self) -> dict[str, Any]:
        """Return plain data for a report, without the single calls: there can be millions."""
        return {"reason": self.reason, "rows": [asdict(row) for row in self.rows], "known": self.known}

    def during_imports(self, process: Process) -> list[CallTotal]:
        """Return the file-system calls during imports of a process, by module, the most frequent first."""
        start_s = (process.started_real_ns) / 1e9
        totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        by_tid = _by_tid(process)
        asking: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for call in self.calls:
            if call.name in FILE_CALLS and call.tid in by_tid:
                asking[call.tid].append(((call.time_s - start_s) * 1e9, call.spent_s))
        for tid, moments in asking.items():
            for name, spent_s in _laid_to(by_tid[tid], moments):
                totals[name][0] += 1
                totals[name][1] += spent_s
        rows = [CallTotal(name, int(count), 0, round(spent * 1e9)) for name, (count, spent) in totals.items()]
        return sorted(rows, key=lambda row: -row.calls)[:20]


_Spans = list[tuple[int, int, str]]


def _by_tid(process: Process) -> dict[int, _Spans]:
    spans: dict[int, _Spans] = defaultdict(list)
    for entry in process.imports:
        if entry.thread < len(process.threads):
            span = (entry.begin_ns, entry.begin_ns + entry.total_ns, entry.name)
            spans[process.threads[entry.thread].tid].append(span)
    return spans


def _laid_to(spans: _Spans, moments: list[tuple[float, float]]) -> Iterator[tuple[str, float]]:
    """Yield the innermost import that is running at each moment, with the weight of the moment.

    One pass over both in the order of time, since there are thousands of each.
    """
    begun: _Spans = []
    coming = deque(sorted(spans, key=lambda span: span[0]))
    for moment_ns, weight in sorted(moments):
        while coming and coming[0][0] <= moment_ns:
            begun.append(coming.popleft())
        while begun and begun[-1][1] < moment_ns:
            begun.pop()
        if begun:
            yield begun[-1][2], weight


def futex_calls(process: Process) -> tuple[int, int]:
    """Return the least number of futex calls for locks and for the GIL.

    A lock wait takes two calls: one blocks the waiter, one of another thread wakes it. A waiter
    for the GIL sleeps again after each wake-up.
    """
    locks = 2 * sum(thread.lock_waits for thread in process.threads)
    gil = sum(thread.wakeups + thread.waits for thread in process.threads)
    return locks, gil


def strace() -> str | None:
    """Return the path of strace, or None."""
    return shutil.which("strace")


def parse(lines: Iterable[str]) -> Iterator[Call]:
    """Parse strace's lines; lines that are no call (signals, exits, cut lines) are skipped."""
    for line in lines:
        match = _LINE.match(line.rstrip("\n"))
        if match is None or match["spent"] is None:
            continue
        named = _CALL.match(match["what"]) or _RESUMED.match(match["what"])
        if named is not None:
            yield Call(
                int(match["tid"]),
                float(match["time"]),
                named["name"],
                float(match["spent"]),
                _ERROR.search(match["what"]) is not None,
            )


def counted(lines: Iterable[str], names: dict[int, str]) -> Syscalls:
    """Return the totals of strace's lines; ``names`` maps native thread identifiers to names."""
    calls = list(parse(lines))
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.name].append(call)
    rows = [
        CallTotal(
            name,
            len(group),
            sum(call.has_failed for call in group),
            round(sum(call.spent_s for call in group) * 1e9),
            _threads(group, names),
        )
        for name, group in groups.items()
    ]
    return Syscalls("" if rows else "strace wrote nothing.", sorted(rows, key=lambda row: -row.time_ns), calls=calls)


def _threads(group: list[Call], names: dict[int, str]) -> str:
    """Return the names of the threads that made the most calls."""
    counts: dict[int, int] = defaultdict(int)
    for call in group:
        counts[call.tid] += 1
    most = sorted(counts.items(), key=lambda item: -item[1])[:3]
    words = [f"{names.get(tid, tid)} {count:,}" for tid, count in most]
    return ", ".join(words) + (" …" if len(counts) > 3 else "")
