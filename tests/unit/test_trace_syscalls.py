"""strace's lines and CPython's import timer are read as they are written; the rest is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.doctor import importtime
from unsnarl.trace import syscalls

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
