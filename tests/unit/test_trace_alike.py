"""Findings that say the same about several processes: one row for all, none lost."""

from __future__ import annotations

from dataclasses import replace

from unsnarl.trace.findings import alike
from unsnarl.trace.findings.finding import NOTABLE, Finding, Remedy
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.views import terminal

START = Finding(
    "slow-start", NOTABLE, "the start is long", figures={"start_ns": 50_000_000}, remedy=Remedy("import less"), pid=10
)


def children(count: int) -> list[Finding]:
    """Return a slow start of so many processes, of which the second is the slowest."""
    starts = [50_000_000, 70_000_000] + [50_000_000] * count
    return [replace(START, pid=10 + number, figures={"start_ns": starts[number]}) for number in range(count)]


def test_the_slowest_of_like_processes_stands_for_all() -> None:
    [group] = alike.groups(children(25), {})
    assert (group.worst.pid, len(group.others)) == (11, 24)
    assert group.together == "in all 25 processes: 1.27 s"


def test_findings_about_one_process_or_with_other_remedies_are_not_alike() -> None:
    other = replace(START, pid=11, remedy=Remedy("start it once"))
    elsewhere = replace(START, pid=12, place="app.py:3 in main")
    groups = alike.groups([START, START, other, elsewhere], {})
    assert [(group.worst, group.others, group.together) for group in groups] == [
        (finding, [], "") for finding in (START, START, other, elsewhere)
    ]


def test_other_programs_are_not_alike() -> None:
    commands = {10: ["python", "/bin/a", "x"], 11: ["python", "/bin/b", "x"], 12: ["python", "/bin/a", "y"]}
    programs = {pid: alike.program_of(command) for pid, command in commands.items()}
    groups = alike.groups([replace(START, pid=pid) for pid in commands], programs)
    assert [[finding.pid for finding in (group.worst, *group.others)] for group in groups] == [[10, 12], [11]]
    words = ["python", "-c", "pass", "x"], ["python", "-m", "pip", "list"], ["python"]
    assert [alike.program_of(command) for command in words] == ["-c pass", "-m pip", ""]


def test_each_process_has_its_own_account() -> None:
    accounts = [replace(START, kind="time", pid=pid) for pid in (1, 2)]
    assert [group.worst for group in alike.groups(accounts, {})] == accounts


def test_the_terminal_says_once_what_is_so_in_many_processes() -> None:
    lines = terminal.text([], children(25), Syscalls()).splitlines()
    assert lines == [
        " ! the start is long (process 11, and much the same in 24 others)",
        "     in all 25 processes: 1.27 s",
        "     → import less",
    ]
