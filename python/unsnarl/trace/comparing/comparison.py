"""Compares two recordings of a program: where the time went, the waits of each kind of thread, and the findings.

Pure: processes in, plain data out. Must never: call a difference real. Two runs differ without a cause, so a
``Change`` is only what differs by more than ``LEAST_SHARE`` of the run and by ``LEAST_RATIO``; the views state that
one run of each is no measurement. Invariant: what both recordings have in common is compared by names that a small
change of the program keeps: functions instead of lines, kinds of threads instead of threads, and no process ids.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from unsnarl.trace.findings.account import IDLE, parts_of
from unsnarl.trace.findings.conclusions import all_findings
from unsnarl.trace.findings.finding import FINE, Finding
from unsnarl.trace.model import STATES, Process, Thread
from unsnarl.trace.thread_groups import kind_of

LEAST_SHARE = 0.02
"""The least difference that is a change, as a share of the longer run."""

LEAST_RATIO = 1.1
"""The least ratio of the greater to the smaller time of a change."""

LEAST_WAIT_NS = 1_000_000
"""The least difference of a single wait for the GIL that is a change; shorter ones are hardly noticed."""

WAIT_RATIO = 2.0
"""The least ratio of such waits: a longest wait is one value, and scatters more than a total."""

_NEUTRAL = IDLE | {"sleeping"}
"""What is neither better nor worse when it takes longer."""


@dataclass(frozen=True, slots=True)
class Row:
    """Times of one thing in both recordings.

    Attributes:
        what: the thing, in words.
        before_ns, after_ns: its time in the first and in the second recording.
        is_cost: whether less of it is better.
    """

    what: str
    before_ns: int
    after_ns: int
    is_cost: bool = True


@dataclass(frozen=True, slots=True)
class Side:
    """What the threads of one kind did in one recording.

    Attributes:
        threads: their number.
        totals_ns: their time in each of the model's STATES.
        waits: how often they waited for the GIL.
        longest_wait_ns: the longest of these waits.
    """

    threads: int
    totals_ns: list[int]
    waits: int
    longest_wait_ns: int

    @property
    def mean_wait_ns(self) -> int:
        """Return the mean wait for the GIL."""
        return self.totals_ns[STATES.index("waiting")] // self.waits if self.waits else 0


@dataclass(frozen=True, slots=True)
class Kind:
    """The threads of one kind; a side is None where there are none."""

    name: str
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True)
class Shared:
    """A process that both recordings have.

    Attributes:
        before, after: its recordings.
        rows: where the time of its threads went, the largest difference first.
        kinds: its threads, the busiest first.
    """

    before: Process
    after: Process
    rows: list[Row]
    kinds: list[Kind]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two recordings of a program.

    Attributes:
        before, after: the processes of each.
        shared: the processes that both have.
        only_before, only_after: the others.
        is_per_second: whether times are those of a second of the recording, since the lengths have no meaning: at
            least one recording is of a process that was already running.
        worse, better: the changes, the largest first.
        gone, new, lasting: the findings that only the first, only the second, or both recordings have.
    """

    before: list[Process]
    after: list[Process]
    shared: list[Shared]
    only_before: list[Process]
    only_after: list[Process]
    is_per_second: bool
    worse: list[Row]
    better: list[Row]
    gone: list[Finding]
    new: list[Finding]
    lasting: list[Finding]


def compare(before: list[Process], after: list[Process]) -> Comparison:
    """Compare two recordings, each with at least one process."""
    is_per_second = not (before[0].executed_ns and after[0].executed_ns)
    pairs = _pairs(before, after)
    shared = [_shared(first, second, is_per_second=is_per_second) for first, second in pairs]
    changes = [change for entry in shared for change in _changes(entry, len(shared), is_per_second=is_per_second)]
    changes.sort(key=lambda row: -abs(row.after_ns - row.before_ns))
    findings = [[found for found in all_findings(side) if found.severity != FINE] for side in (before, after)]
    keys = [{_key(found) for found in side} for side in findings]
    return Comparison(
        before,
        after,
        shared,
        _without(before, [first for first, _ in pairs]),
        _without(after, [second for _, second in pairs]),
        is_per_second,
        [row for row in changes if row.after_ns > row.before_ns],
        [row for row in changes if row.after_ns < row.before_ns],
        [found for found in findings[0] if _key(found) not in keys[1]],
        [found for found in findings[1] if _key(found) not in keys[0]],
        [found for found in findings[1] if _key(found) in keys[0]],
    )


def _pairs(before: list[Process], after: list[Process]) -> list[tuple[Process, Process]]:
    """Pair the first processes, and of the others the n-th with the same command."""
    waiting: dict[tuple[str, ...], list[Process]] = defaultdict(list)
    for process in after[1:]:
        waiting[_command(process)].append(process)
    others = [(process, waiting[_command(process)].pop(0)) for process in before[1:] if waiting[_command(process)]]
    return [(before[0], after[0]), *others]


def _command(process: Process) -> tuple[str, ...]:
    return tuple(os.path.basename(word) for word in process.command)


def _without(processes: list[Process], left_out: list[Process]) -> list[Process]:
    return [process for process in processes if all(process is not other for other in left_out)]


def _shared(before: Process, after: Process, *, is_per_second: bool) -> Shared:
    scales = [_per_second(process) if is_per_second else _unchanged for process in (before, after)]
    sides = [_parts(process) for process in (before, after)]
    rows: list[Row] = []
    for key in {**sides[0], **sides[1]}:
        (first_ns, first), (second_ns, second) = (side.get(key, (0, "")) for side in sides)
        rows.append(Row(second or first, scales[0](first_ns), scales[1](second_ns), key[0] not in _NEUTRAL))
    rows.sort(key=lambda row: (-abs(row.after_ns - row.before_ns), row.what))
    return Shared(before, after, rows, _kinds(before, after, scales))


def _parts(process: Process) -> dict[tuple[str, str, str], tuple[int, str]]:
    """Return the time of each part of a process's account, and its words, by what a changed line does not change."""
    result: dict[tuple[str, str, str], tuple[int, str]] = {}
    for part in parts_of(process, list(range(len(process.threads)))):
        place = part.place
        key = (part.what, os.path.basename(place.file) if place else "", place.function if place else "")
        time_ns, words = result.get(key, (0, part.words))
        result[key] = (time_ns + part.time_ns, words)
    return result


def _per_second(process: Process) -> Callable[[int], int]:
    length_ns = process.length_ns
    return lambda time_ns: time_ns * 1_000_000_000 // length_ns if length_ns else 0


def _unchanged(time_ns: int) -> int:
    return time_ns


def _kinds(before: Process, after: Process, scales: list[Callable[[int], int]]) -> list[Kind]:
    sides: list[dict[str, Side]] = []
    labels: dict[str, set[str]] = defaultdict(set)
    for process, scale in zip((before, after), scales, strict=True):
        threads: dict[str, list[Thread]] = defaultdict(list)
        for thread in process.threads:
            threads[kind_of(thread.label)].append(thread)
        sides.append({kind: _side(members, scale) for kind, members in threads.items()})
        for kind, members in threads.items():
            labels[kind].update(thread.label for thread in members)
    kinds = [
        Kind(min(names) if len(names) == 1 else kind.replace("#", "N"), sides[0].get(kind), sides[1].get(kind))
        for kind, names in labels.items()
    ]
    return sorted(kinds, key=lambda kind: (-_busy_ns(kind), kind.name))


def _side(threads: list[Thread], scale: Callable[[int], int]) -> Side:
    totals = [scale(sum(parts)) for parts in zip(*(thread.totals_ns for thread in threads), strict=True)]
    waits = sum(thread.waits for thread in threads)
    return Side(len(threads), totals, waits, max(thread.longest_wait_ns for thread in threads))


def _busy_ns(kind: Kind) -> int:
    return max(sum(side.totals_ns[:3]) for side in (kind.before, kind.after) if side is not None)


def _changes(shared: Shared, processes: int, *, is_per_second: bool) -> Iterable[Row]:
    """Yield what differs enough to be shown as better or worse."""
    of = f" (process {shared.after.pid})" if processes > 1 else ""
    lengths = Row("the run", shared.before.length_ns, shared.after.length_ns)
    longer_ns = 1_000_000_000 if is_per_second else max(lengths.before_ns, lengths.after_ns)
    candidates = [(row, LEAST_SHARE * longer_ns, LEAST_RATIO) for row in shared.rows if row.is_cost]
    if not is_per_second:
        candidates.append((lengths, LEAST_SHARE * longer_ns, LEAST_RATIO))
    for kind in shared.kinds:
        first, second = kind.before, kind.after
        if first is not None and second is not None:
            longest = Row(f"longest wait of `{kind.name}` for the GIL", first.longest_wait_ns, second.longest_wait_ns)
            candidates.append((longest, LEAST_WAIT_NS, WAIT_RATIO))
    for row, least_ns, ratio in candidates:
        low, high = sorted((row.before_ns, row.after_ns))
        if high - low >= least_ns and high >= ratio * low:
            yield Row(row.what + of, row.before_ns, row.after_ns)


def _key(finding: Finding) -> tuple[str, str, str]:
    """Return what a finding has in common with the same finding about a run with other lines, numbers or threads."""
    place = finding.place or ""
    file, _, rest = place.rpartition(":")
    return finding.kind, kind_of(finding.thread or ""), f"{os.path.basename(file)} {rest.partition(' in ')[2]}"
