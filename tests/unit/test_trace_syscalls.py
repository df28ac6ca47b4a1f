"""The parsers accept strace's lines and CPython's import timer, and skip all other lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_trace_views import process
from unsnarl.doctor import importtime
from unsnarl.trace import report, syscalls
from unsnarl.trace.views import html

LINES = """\
4711 1700000000.000100 openat(AT_FDCWD, ""..., O_RDONLY|O_CLOEXEC) = 3 <0.000010>
4711 1700000000.000200 openat(AT_FDCWD, ""..., O_RDONLY) = -1 ENOENT (No such file or directory) <0.000020>
4712 1700000000.000300 futex(0x7f00, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, FUTEX_BITSET_MATCH_ANY <unfinished ...>
4711 1700000000.000400 --- SIGCHLD {si_signo=SIGCHLD} ---
4712 1700000000.000500 <... futex resumed>) = 0 <0.500000>
4712 1700000000.000600 +++ exited with 0 +++
4711 1700000000.0007
""".splitlines()


def test_calls_are_counted_by_name_and_thread() -> None:
    found = syscalls.counted(LINES, {4711: "MainThread", 4712: "worker"})
    assert found.reason == ""
    futex, openat = found.rows
    assert (futex.name, futex.calls, futex.errors, futex.time_ns, futex.threads) == (
        "futex",
        1,
        0,
        500_000_000,
        "worker 1",
    )
    assert (openat.name, openat.calls, openat.errors, openat.time_ns) == ("openat", 2, 1, 30_000)


def test_nothing_is_said_to_be_nothing() -> None:
    assert syscalls.counted([], {}).reason


@given(st.lists(st.text(max_size=80)))
def test_any_lines_are_survived(lines: list[str]) -> None:
    syscalls.counted(lines, {})
    importtime.parse(lines)


def test_a_page_has_the_totals_and_not_each_call() -> None:
    many = [f"4711 1700000000.{number:06} openat(AT_FDCWD) = 3 <0.000010>" for number in range(1000)]
    made = report.make([process()], syscalls.counted(many, {}))
    page, few = (html.page(made.processes, made.findings, calls) for calls in (made.syscalls, syscalls.Syscalls()))
    assert '"calls":1000' in page
    assert len(page) - len(few) < 1000


def an_import(name: str, begin_ns: int, end_ns: int) -> dict[str, object]:
    times = {"begin_ns": begin_ns, "total_ns": end_ns - begin_ns, "self_ns": 1}
    return {"name": name, "parent": None, "thread": 0, **times}


def a_call(tid: int, moment_ns: int) -> syscalls.Call:
    return syscalls.Call(tid, moment_ns / 1e9, "openat", 0.001, has_failed=False)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=12),
    st.lists(st.integers(0, 110), max_size=30),
)
def test_a_call_is_laid_to_the_import_that_began_last(spans: list[tuple[int, int]], moments: list[int]) -> None:
    spans.sort(key=lambda span: span[0])
    step = 1_000_000
    made = process(
        imports=[an_import(str(at), begin * step, (begin + length) * step) for at, (begin, length) in enumerate(spans)],
        started_real_ns=0,
    )
    calls = [a_call(10, moment * step + step // 2) for moment in moments] + [a_call(99, 0)]
    expected: dict[str, int] = {}
    for moment in moments:
        under_way = [at for at, (begin, length) in enumerate(spans) if begin <= moment < begin + length]
        if under_way:
            expected[str(under_way[-1])] = expected.get(str(under_way[-1]), 0) + 1
    rows = syscalls.Syscalls(calls=calls).during_imports(made)
    assert {row.name: row.calls for row in rows} == expected
    assert [row.time_ns for row in rows] == [row.calls * 1_000_000 for row in rows]


IMPORTS = """\
import time: self [us] | cumulative | imported package
import time:       100 |        100 |     _io
import time:       200 |        300 |   encodings
some words of the program
import time:        50 |         50 | site
""".splitlines()


def test_import_times_are_nested_by_their_blanks() -> None:
    modules = importtime.parse(IMPORTS)
    assert [(module.name, module.depth, module.self_us, module.total_us) for module in modules] == [
        ("_io", 2, 100, 100),
        ("encodings", 1, 200, 300),
        ("site", 0, 50, 50),
    ]
    assert importtime.total_us(modules) == 50
    assert importtime.slowest(modules, 1)[0].name == "encodings"


@pytest.mark.parametrize("words", ["-X", "importtime"])
def test_a_plain_line_is_no_import(words: str) -> None:
    assert importtime.parse([words, "import time: nonsense"]) == []
