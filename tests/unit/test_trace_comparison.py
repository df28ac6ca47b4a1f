"""Two recordings are compared by what both have; what got worse comes first, and one run is not called a proof."""

import dataclasses
import json

import pytest

from tests.unit.test_trace_findings import thread
from tests.unit.test_trace_views import EVIL, process
from unsnarl.trace.comparing import data, page, text
from unsnarl.trace.comparing.comparison import Comparison, Kind, compare
from unsnarl.trace.model import Process

MS = 1_000_000


def run(length_ns: int, executed_ns: int = 1, **totals: int) -> Process:
    """Return a process with three workers of the same totals."""
    names = ("worker-1", "worker-2", "worker-3")
    none: list[list[int]] = []
    threads = [thread(number, name, **totals) | {"stretches": none} for number, name in enumerate(names)]
    return process(length_ns=length_ns, executed_ns=executed_ns, threads=threads, stacks=[], imports=[])


def worse(comparison: Comparison) -> dict[str, tuple[int, int]]:
    return {row.what: (row.before_ns, row.after_ns) for row in comparison.worse}


def better(comparison: Comparison) -> dict[str, tuple[int, int]]:
    return {row.what: (row.before_ns, row.after_ns) for row in comparison.better}


def test_what_got_worse_is_told_from_what_got_better() -> None:
    made = compare(
        [run(100 * MS, running_ns=10 * MS, waiting_ns=80 * MS, longest_wait_ns=20 * MS, waits=8)],
        [run(60 * MS, running_ns=20 * MS, waiting_ns=10 * MS, longest_wait_ns=5 * MS, waits=10)],
    )
    assert worse(made) == {"computing": (30 * MS, 60 * MS)}
    assert better(made) == {
        "waiting for the GIL": (240 * MS, 30 * MS),
        "the run": (100 * MS, 60 * MS),
        "longest wait of `worker-N` for the GIL": (20 * MS, 5 * MS),
    }
    (kind,) = made.shared[0].kinds
    assert kind.before is not None
    assert kind.after is not None
    assert (kind.before.mean_wait_ns, kind.after.mean_wait_ns) == (10 * MS, MS)


def test_a_recording_and_itself_differ_in_nothing() -> None:
    made = compare([run(100 * MS, running_ns=10 * MS)], [run(100 * MS, running_ns=10 * MS)])
    assert (made.worse, made.better, made.new, made.gone) == ([], [], [], [])
    assert "worse in B: nothing that stands out" in text.text(made)


def test_sleeping_longer_is_neither_better_nor_worse() -> None:
    made = compare([run(100 * MS, asleep_ns=10 * MS)], [run(100 * MS, asleep_ns=90 * MS)])
    assert made.worse == []
    assert [row.what for row in made.shared[0].rows] == ["sleeping"]


def test_recordings_of_running_processes_are_compared_by_the_second() -> None:
    """One of five seconds and one of ten seconds of the same server have the same times of a second."""
    made = compare(
        [run(5_000 * MS, executed_ns=0, waiting_ns=1_000 * MS)],
        [run(10_000 * MS, executed_ns=0, waiting_ns=2_000 * MS)],
    )
    assert made.is_per_second
    assert (made.worse, made.better) == ([], [])
    assert made.shared[0].rows[0].before_ns == made.shared[0].rows[0].after_ns == 600 * MS


def test_processes_are_paired_by_their_commands() -> None:
    def child(pid: int, command: str) -> Process:
        return dataclasses.replace(run(10 * MS), pid=pid, text=f"cpython\x1f3.13\x1f/lib\x1f/bin/python\x1f{command}")

    made = compare(
        [run(100 * MS), child(8, "one"), child(9, "two"), child(10, "two")],
        [run(100 * MS), child(18, "two"), child(19, "three")],
    )
    assert [(entry.before.pid, entry.after.pid) for entry in made.shared] == [(7, 7), (9, 18)]
    assert [entry.pid for entry in made.only_before] == [8, 10]
    assert [entry.pid for entry in made.only_after] == [19]
    assert "2 of A's processes have no counterpart" in text.text(made)


def test_findings_are_gone_new_or_lasting() -> None:
    hold = {"thread": 1, "begin_ns": 3 * MS, "length_ns": 200 * MS, "waited_ns": MS, "victims": 1, "node": 1}
    contention = {"pairs": [], "long_holds": [hold] * 3, "wakeups": [], "histogram": [0] * 32}
    # The same function at another line is the same finding.
    locations = {"1": ["/other/worker.py", "work", 9]}
    plain, held = process(), process(contention=contention)
    moved = process(contention=contention, locations=locations)
    assert [found.kind for found in compare([plain], [held]).new] == ["long-hold"]
    assert [found.kind for found in compare([held], [plain]).gone] == ["long-hold"]
    both = compare([held], [moved])
    assert ([found.kind for found in both.lasting], both.new, both.gone) == (["long-hold"], [], [])


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(
    "name", ["worker", EVIL, "ThreadPoolExecutor-0_worker-of-a-very-long-name-that-fits-no-column"]
)
def test_the_text_fits_and_names_both_recordings(name: str, columns: int) -> None:
    shown = text.text(compare([process(name)], [process(name, length_ns=30 * MS)]), columns)
    assert "\x1b" not in shown
    assert "one recording of each" in shown
    assert max(map(len, shown.splitlines())) <= columns
    assert {"A", "B"} <= {line.split()[0].rstrip(":,") for line in shown.splitlines() if line.strip()} | {"A", "B"}


def test_the_document_has_a_schema_and_the_figures() -> None:
    made = compare([run(100 * MS, waiting_ns=80 * MS)], [run(60 * MS, waiting_ns=10 * MS)])
    document = json.loads(data.text(made))
    assert document["schema"] == 1
    assert document["better"][0] == {
        "what": "waiting for the GIL", "before_ns": 240 * MS, "after_ns": 30 * MS, "is_cost": True,
    }  # fmt: skip
    assert document["shared"][0]["kinds"][0]["before"]["threads"] == 3


def test_the_page_keeps_names_as_text() -> None:
    shown = page.page(compare([process(EVIL)], [process(EVIL)]))
    assert shown.count("<script") == 3
    assert "alert(1)</script>;" not in shown


def test_a_kind_of_threads_may_be_in_one_recording_only() -> None:
    made = compare([run(100 * MS)], [process()])
    assert {kind.name: (kind.before is None, kind.after is None) for kind in made.shared[0].kinds} == {
        "worker-N": (False, True),
        "worker": (True, False),
        "thread 11": (True, False),
    }
    assert isinstance(made.shared[0].kinds[0], Kind)
