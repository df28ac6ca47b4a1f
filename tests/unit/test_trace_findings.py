"""Findings are shares of the recorded part, and report what the records do not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.test_trace_views import process
from unsnarl.trace.findings import convoys
from unsnarl.trace.findings import gil as findings_gil
from unsnarl.trace.findings import locks as findings_locks
from unsnarl.trace.findings.finding import NOTABLE, SEVERE
from unsnarl.trace.model import IN_IO, LOCK, RUNNING, SLEEPING, Process

MS = 1_000_000
LENGTH = 10_000 * MS
SEEN = 100 * MS
"""The last hundredth of the run."""

Entry = dict[str, Any]


def thread(number: int, name: str, *, begin_ns: int = 0, **totals_ns: int) -> Entry:
    """Return a thread whose records begin at some time."""
    return {
        "ident": number + 1, "tid": 10 + number, "name": name, "begin_ns": 0, "end_ns": LENGTH, "has_ended": True,
        "running_ns": 0, "waiting_ns": 0, "on_lock_ns": 0, "asleep_ns": 0, "io_ns": 0, "computing_ns": 0,
        "takes": 9, "waits": 9, "lock_waits": 9, "wakeups": 9, "longest_hold_ns": 5 * MS, "longest_wait_ns": 5 * MS,
        "forced_drops": 0, "stretches": [[begin_ns, LENGTH - begin_ns, 0, 1]], **totals_ns,
    }  # fmt: skip


def pair(count: int) -> Entry:
    """Return waits of five milliseconds of thread 1 behind thread 0."""
    waits = {"count": count, "total_ns": 5 * MS * count, "longest_ns": 5 * MS, "median_ns": 5 * MS}
    return {"waiter": 1, "holder": 0, **waits, "holder_node": 1, "waiter_node": 0}


def long_run(
    pairs: list[Entry], *, waiting_ns: int, long_holds: list[Entry] | None = None, **changes: object
) -> Process:
    """Return a run with a busy thread and a thread that is mostly in I/O; the records cover the end of the run."""
    threads = [
        thread(0, "worker", begin_ns=LENGTH - SEEN, running_ns=LENGTH, takes=2000),
        thread(1, "health", begin_ns=LENGTH - SEEN // 2, io_ns=LENGTH - waiting_ns, waiting_ns=waiting_ns),
    ]
    contention = {"pairs": pairs, "long_holds": long_holds or [], "wakeups": [], "histogram": [0] * 32}
    gone: dict[str, Any] = {"overwritten": 7, "records_from_ns": LENGTH - SEEN} | changes
    return process(length_ns=LENGTH, threads=threads, contention=contention, **gone)


def waits(**changes: int | None) -> Entry:
    """Return lock waits with unknown lines."""
    nodes = {"wait_node": 0, "releaser": 0, "release_node": 0, "holder_node": 0, "holder_state": 0}
    numbers = {"waiter": 1, "waiters": 1, "holder_permille": 0, "count": 900, "timeouts": 0}
    times = {"total_ns": LENGTH // 2, "left_out_ns": LENGTH // 2, "longest_ns": 9 * MS}
    return nodes | numbers | {"guessed": 0, "left_out": 900} | times | changes


def test_a_convoy_is_a_share_of_what_there_are_records_of() -> None:
    [finding] = findings_gil.findings(long_run([pair(9)], waiting_ns=5_000 * MS))
    assert (finding.kind, finding.severity) == ("convoy", SEVERE)
    assert "9 times: 90 % of the 50.0 ms of its life that are still recorded" in finding.title


def test_a_convoy_of_a_whole_recording_is_a_share_of_a_life() -> None:
    whole = long_run([pair(900)], waiting_ns=5_000 * MS, overwritten=0, records_from_ns=0)
    [finding] = findings_gil.findings(whole)
    assert finding.title.endswith("900 times: 45 % of its life")


def test_waits_of_which_the_records_are_gone_are_not_called_no_matter() -> None:
    [finding] = findings_gil.findings(long_run([], waiting_ns=5_000 * MS))
    assert (finding.kind, finding.severity, finding.thread) == ("gil-waits", NOTABLE, "health")
    assert "waited 5.00 s for the GIL in all (50 % of the time)" in finding.title
    assert finding.remedy is not None
    assert "--size" in finding.remedy.what


@pytest.mark.parametrize("waiting_ns", [0, 400 * MS])
def test_few_waits_are_no_matter(waiting_ns: int) -> None:
    [finding] = findings_gil.findings(long_run([], waiting_ns=waiting_ns))
    assert finding.kind == "no-gil-contention"


def test_lock_waits_at_unknown_lines_are_told() -> None:
    [finding] = findings_locks.findings(long_run([], waiting_ns=0, records_from_ns=0, locks=[waits()]))
    assert (finding.kind, finding.severity) == ("lock-waits", NOTABLE)
    assert "900 times, 5.00 s in all, at lines that were not recorded" in finding.title


@pytest.mark.parametrize(
    ("function", "placed_ns", "kinds"),
    [("Thread.join", LENGTH, []), ("Thread.join", LENGTH // 9, ["lock-waits"]), ("Lock.use", LENGTH, ["lock-waits"])],
)
def test_waits_without_a_stack_are_for_work_as_those_with_one(function: str, placed_ns: int, kinds: list[str]) -> None:
    tables = locations(("/lib/threading.py", function, 7), ("/app/app.py", "work", 3))
    stacks = [[1, LOCK, 1, placed_ns]]
    run = long_run([], waiting_ns=0, records_from_ns=0, locks=[waits()], stacks=stacks, **tables)
    assert [finding.kind for finding in findings_locks.findings(run)] == kinds


@pytest.mark.parametrize(
    ("left_out", "left_out_ns", "kinds"),
    [
        (5, LENGTH // 2, ["lock-waits"]),
        (4, LENGTH // 2, []),  # long enough to be the cause, too few to be called one
        (4, LENGTH // 100, ["no-lock-contention"]),  # those of a thread that had no processor
    ],
)
def test_of_waits_at_unknown_lines_nobody_knows_the_cause(left_out: int, left_out_ns: int, kinds: list[str]) -> None:
    few = waits(count=left_out, left_out=left_out, total_ns=left_out_ns, left_out_ns=left_out_ns)
    found = findings_locks.findings(long_run([], waiting_ns=0, records_from_ns=0, locks=[few]))
    assert [finding.kind for finding in found] == kinds


def test_waits_at_many_lines_are_not_called_no_cause() -> None:
    """None of the lines has a share that matters, and all of them together have most of the run."""
    tables: dict[str, Any] = {
        "locations": {str(number): ["/app/app.py", "work", number] for number in range(1, 61)},
        "nodes": {str(number): [0, number] for number in range(1, 61)},
    }
    known = {"left_out": 0, "left_out_ns": 0, "count": 9, "total_ns": LENGTH // 100}
    groups = [waits(wait_node=number, **known) for number in range(1, 61)]
    assert findings_locks.findings(long_run([], waiting_ns=0, records_from_ns=0, locks=groups, **tables)) == []


@pytest.mark.parametrize(("waiting_share", "severity"), [(0.5, SEVERE), (0.2, NOTABLE)])
def test_square_wakeups_are_severe_where_threads_wait_for_long(waiting_share: float, severity: str) -> None:
    waiting_ns = int(waiting_share * LENGTH)
    group = {"waiters_from": 64, "waiters_to": 127, "waits": 900, "wakeups": 30_000, "waiters": 90_000}
    threads = [
        thread(number, f"worker-{number}", waiting_ns=waiting_ns, io_ns=LENGTH - waiting_ns) for number in range(2)
    ]
    contention = {"pairs": [], "long_holds": [], "wakeups": [group], "histogram": [0] * 32}
    [found] = findings_gil.square(process(length_ns=LENGTH, threads=threads, contention=contention))
    assert found.severity == severity


def test_waits_that_should_have_had_no_stack_are_no_matter() -> None:
    """Short waits, and waits that have not ended with the recording."""
    short = waits(left_out=0, left_out_ns=0)
    [finding] = findings_locks.findings(long_run([], waiting_ns=0, locks=[short]))
    assert finding.kind == "no-lock-contention"


@pytest.mark.parametrize(("guessed", "severity"), [(450, SEVERE), (451, NOTABLE)])
def test_a_lock_of_which_most_lines_are_guessed_is_not_severe(guessed: int, severity: str) -> None:
    known = waits(wait_node=1, guessed=guessed, left_out=0, left_out_ns=0, total_ns=60 * MS)
    [finding] = findings_locks.findings(long_run([], waiting_ns=0, locks=[known]))
    assert (finding.kind, finding.severity) == ("contended-lock", severity)
    assert any(f"{guessed} of the waits had no stack" in line for line in finding.details)


def locations(*stack: tuple[str, str, int]) -> Entry:
    """Return the tables of one stack, the innermost frame first, as node 1 (its callers are nodes 2, 3 …)."""
    last = len(stack)
    return {
        "locations": {str(number): list(line) for number, line in enumerate(stack, 1)},
        "nodes": {str(number): [number + 1 if number < last else 0, number] for number in range(1, last + 1)},
    }


@pytest.mark.parametrize(("state", "words"), [(IN_IO, "do the I/O outside of"), (SLEEPING, "sleep outside of")])
def test_the_remedy_for_an_idle_holder_is_about_what_it_does(state: int, words: str) -> None:
    known = waits(wait_node=1, left_out=0, left_out_ns=0, releaser=0, holder_state=state, holder_permille=900)
    tables = locations(("/app/app.py", "work", 3))
    [finding] = findings_locks.findings(long_run([], waiting_ns=0, locks=[known], **tables))
    assert finding.figures["across_io"] == 1
    assert finding.remedy is not None
    assert f"{words} the lock" in finding.remedy.what


def test_patch_is_advised_only_for_a_class_that_it_replaces() -> None:
    lock = locations(("/app/app.py", "work", 3))
    queue = locations(("/lib/queue.py", "Queue.put", 130), ("/app/app.py", "work", 3))
    known = waits(wait_node=1, left_out=0, left_out_ns=0)
    for tables, command in ((lock, None), (queue, "unsnarl run --patch")):
        [finding] = findings_locks.findings(long_run([], waiting_ns=0, locks=[known], **tables))
        assert finding.kind == "contended-lock"
        assert finding.remedy is not None
        assert finding.remedy.command == command


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"timeouts": 900, "total_ns": 900 * MS}, ["polling"]),
        ({"timeouts": 900, "total_ns": 900 * 60 * MS}, ["contended-lock"]),  # of a minute's timeouts: no polling
        ({"timeouts": 400, "total_ns": 900 * MS}, ["contended-lock"]),
    ],
)
def test_waits_that_time_out_soon_are_polling(changes: dict[str, int], kinds: list[str]) -> None:
    tables = locations(("/app/app.py", "work", 3))
    known = waits(wait_node=1, left_out=0, left_out_ns=0, **changes)
    found = findings_locks.findings(long_run([], waiting_ns=0, locks=[known], **tables))
    assert [finding.kind for finding in found] == kinds


def long_hold(length_ms: int, number: int = 0) -> Entry:
    """Return a hold through which thread 1 waited."""
    times = {"begin_ns": number * 1000 * MS, "length_ns": length_ms * MS, "waited_ns": length_ms * MS}
    return {"thread": 0, **times, "victims": 1, "node": 1}


def test_waits_behind_a_c_call_are_no_convoy_and_save_nothing() -> None:
    behind = pair(9) | {"median_ns": 900 * MS, "total_ns": 4_500 * MS, "longest_ns": 900 * MS}
    holds = [long_hold(900, number) for number in range(5)]
    found = findings_gil.findings(long_run([behind], waiting_ns=4_500 * MS, long_holds=holds, records_from_ns=0))
    assert [finding.kind for finding in found] == ["long-hold"]
    assert all(not remedy.saves_ns for finding in found for remedy in finding.remedies)


def test_a_hold_without_a_processor_is_no_long_call() -> None:
    holds = [long_hold(900, number) | {"starved_ns": 880 * MS} for number in range(5)]
    found = findings_gil.findings(long_run([], waiting_ns=4_500 * MS, long_holds=holds, records_from_ns=0))
    assert [finding.kind for finding in found] == ["no-processor"]
    assert found[0].figures["count"] == 5


@pytest.mark.parametrize(("threads", "kinds"), [(1, ["long-hold"]), (3, ["no-processor"])])
def test_single_long_holds_of_a_few_among_many_threads_are_no_call(threads: int, kinds: list[str]) -> None:
    holds = [long_hold(140, number) | {"thread": 2 + number % threads} for number in range(3)]
    run = long_run([], waiting_ns=0, long_holds=holds, records_from_ns=0)
    crowd = [replace(run.threads[1], name=f"sleeper-{number}") for number in range(120)]
    found = findings_gil.findings(replace(run, threads=crowd))
    assert [finding.kind for finding in found] == kinds


def test_the_recorder_s_own_hold_is_no_finding() -> None:
    tables = locations(("/lib/unsnarl/trace/traced/task_stacks.py", "_step", 65), ("/app/app.py", "work", 3))
    holds = [long_hold(90)]
    found = findings_gil.findings(long_run([], waiting_ns=9 * MS, long_holds=holds, records_from_ns=0, **tables))
    assert [finding.kind for finding in found] == ["no-gil-contention"]


def test_a_short_call_that_lacked_a_processor_for_a_part_is_not_said_to_have_had_none() -> None:
    holds = [long_hold(38) | {"starved_ns": 9 * MS}]
    [finding] = findings_gil.findings(long_run([], waiting_ns=38 * MS, long_holds=holds, records_from_ns=0))
    assert finding.kind == "no-processor"
    assert "kept the GIL for up to 38.0 ms, but had no processor for 9.00 ms of it" in finding.title


def test_a_long_call_remains_one_if_it_lacked_a_processor_for_a_part() -> None:
    holds = [long_hold(900, number) | {"starved_ns": 450 * MS} for number in range(5)]
    found = findings_gil.findings(long_run([], waiting_ns=4_500 * MS, long_holds=holds, records_from_ns=0))
    assert [finding.kind for finding in found] == ["long-hold"]
    assert any("no processor for 450 ms" in detail for detail in found[0].details)


def test_waits_for_a_holder_without_a_processor_are_no_convoy() -> None:
    """The waiter waits for no longer than the holder ran, and a scheduler gives nobody a processor."""
    holds = [long_hold(900, number) | {"starved_ns": 880 * MS} for number in range(5)]
    behind = pair(9) | {"median_ns": 500 * MS, "total_ns": 4_500 * MS, "longest_ns": 900 * MS}
    run = long_run([behind], waiting_ns=4_500 * MS, long_holds=holds, records_from_ns=0)
    mostly_idle = replace(run.threads[0], running_ns=LENGTH * 46 // 100, io_ns=LENGTH * 54 // 100)
    starved = replace(run, threads=[mostly_idle, run.threads[1]])
    assert [finding.kind for finding in findings_gil.findings(starved)] == ["no-processor"]
    assert [finding.kind for finding in convoys.findings(replace(starved, long_holds=[]))] == ["convoy"]
    assert convoys.findings(run) == []


@pytest.mark.parametrize(("seen_ns", "total_ns"), [(LENGTH, 800 * MS), (4_000 * MS, 500 * MS)])
def test_a_cpu_bound_holder_that_often_has_no_processor_costs_its_waiter_the_switch_interval(
    seen_ns: int, total_ns: int
) -> None:
    """As far as it had a processor meanwhile; a scheduler would have asked it to drop the GIL that much sooner."""
    holds = [long_hold(40, number) | {"starved_ns": 20 * MS} for number in range(100)]
    behind = pair(200) | {"median_ns": 27 * MS, "total_ns": 8_400 * MS, "longest_ns": 40 * MS}
    run = long_run([behind], waiting_ns=8_400 * MS, long_holds=holds, records_from_ns=LENGTH - seen_ns)
    holder = replace(run.threads[0], stretches=[(LENGTH - seen_ns, seen_ns, RUNNING, 0)])
    [found] = convoys.findings(replace(run, threads=[holder, run.threads[1]]))
    assert found.figures["total_ns"] == total_ns


def test_the_waits_for_a_cpu_bound_holder_are_without_those_parts_in_which_it_had_no_processor() -> None:
    holds = [long_hold(40, number) | {"starved_ns": 20 * MS} for number in range(50)]
    behind = pair(200) | {"median_ns": 27 * MS, "total_ns": 5_400 * MS, "longest_ns": 40 * MS}
    [found] = convoys.findings(long_run([behind], waiting_ns=5_400 * MS, long_holds=holds, records_from_ns=0))
    assert found.figures["total_ns"] == 5_400 * MS - 50 * 20 * MS


def test_the_waits_behind_a_long_call_are_taken_off_once() -> None:
    """The call also lacked a processor for a part: what remains of the waits is a convoy all the same."""
    call = long_hold(900) | {"waited_ns": 900 * MS, "starved_ns": 800 * MS}
    behind = pair(200) | {"total_ns": 1_900 * MS, "longest_ns": 900 * MS}
    run = long_run([behind], waiting_ns=1_900 * MS, long_holds=[call], records_from_ns=0)
    mostly_idle = replace(run.threads[0], running_ns=LENGTH * 46 // 100, io_ns=LENGTH * 54 // 100)
    [found] = convoys.findings(replace(run, threads=[mostly_idle, run.threads[1]]))
    assert found.figures["total_ns"] == 1_000 * MS


def test_a_convoy_saves_no_more_than_its_thread_waited() -> None:
    [finding] = findings_gil.findings(long_run([pair(2000)], waiting_ns=1_000 * MS, records_from_ns=0))
    assert finding.remedy is not None
    assert finding.remedy.saves_ns == 1_000 * MS


@pytest.mark.parametrize(
    ("starved_ms", "waited_ms", "kind"),
    [(79, 17, "no-processor"), (79, 116, "long-hold"), (1, 17, "long-hold")],
)
def test_a_hold_without_a_processor_for_whose_end_nobody_waited_for_long_is_no_call(
    starved_ms: int, waited_ms: int, kind: str
) -> None:
    """A thread in Python's code keeps the GIL for as long as nobody asks for it."""
    hold = long_hold(116) | {"starved_ns": starved_ms * MS, "waited_ns": waited_ms * MS}
    found = findings_gil.findings(long_run([], waiting_ns=17 * MS, long_holds=[hold], records_from_ns=0))
    assert [finding.kind for finding in found] == [kind]
