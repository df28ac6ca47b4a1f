"""What the documents published: the figures of their tables and texts, and what cannot be repeated, with the reason.

Invariant: nothing here was measured by this project. Seconds are rounded to four digits.

The tables of the square problem are from the documentation of aiologic, Copyright 2025 Ilya Egorov, CC-BY-4.0.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column of a published table: the main figure at the sizes of a series."""

    title: str
    variant: str
    """The variant of the laboratory that stands for it."""
    values: tuple[float, ...]


class Curve(NamedTuple):
    """A published table, which the laboratory measures as a series."""

    sizes: tuple[int, ...]
    columns: tuple[Column, ...]


class Point(NamedTuple):
    """A published figure, and where the laboratory measures it."""

    what: str
    value: float
    unit: str
    case: str
    variant: str
    figure: str
    over_variant: str = ""
    """The figure is a ratio to this variant of the same case."""
    over_case: str = ""
    """The figure is a ratio to this case in the same variant."""


_THREADS = tuple(range(100, 1000, 100))
_STARTED = tuple(range(10, 100, 10))
_BEHIND_A_MUTEX = tuple(range(40, 400, 40))

CURVES: dict[str, dict[str, Curve]] = {
    "squares": {
        "start, all cores": Curve(
            _THREADS,
            (
                Column("CPython", "stock", (0.1281, 0.5232, 1.185, 2.171, 3.375, 4.909, 6.699, 8.542, 10.99)),
                Column("PyPy", "pypy", (0.6361, 2.507, 5.806, 10.47, 16.53, 23.25, 33.56, 41.35, 53.1)),
            ),
        ),
        "mutex, all cores": Curve(
            _THREADS,
            (
                Column("CPython", "stock", (0.04066, 0.1631, 0.3845, 0.7174, 1.193, 1.717, 2.328, 2.976, 3.7)),
                Column("PyPy", "pypy", (0.2389, 0.9007, 2.093, 3.856, 6.133, 8.936, 12.7, 16.31, 20.87)),
            ),
        ),
        "semaphore, all cores": Curve(
            _THREADS,
            (
                Column(
                    "CPython", "stock", (0.006713, 0.01498, 0.02471, 0.03551, 0.04747, 0.06221, 0.08906, 0.1145, 0.1455)
                ),
                Column("PyPy", "pypy", (0.4134, 1.586, 3.531, 6.261, 9.607, 13.98, 19.22, 25.34, 31.3)),
            ),
        ),
    },
    "processes": {
        "start, all cores": Curve(
            _STARTED,
            (
                Column(
                    "CPython",
                    "multiprocessing",
                    (0.01728, 0.04652, 0.1123, 0.2379, 0.4101, 0.6485, 0.9398, 1.276, 1.661),
                ),
                Column("PyPy", "pypy", (0.1006, 0.4216, 0.9503, 1.686, 3.188, 4.502, 5.98, 7.863, 10.05)),
            ),
        ),
        "mutex, 1 core": Curve(
            _BEHIND_A_MUTEX,
            (
                Column(
                    "CPython, one core",
                    "multiprocessing",
                    (0.06796, 0.1395, 0.2154, 0.2659, 0.2941, 0.3925, 0.6181, 1.023, 1.479),
                ),
            ),
        ),
        "mutex, all cores": Curve(
            _BEHIND_A_MUTEX,
            (
                Column(
                    "CPython, two cores",
                    "multiprocessing",
                    (0.03523, 0.07295, 0.1163, 0.152, 0.1959, 0.2392, 0.2688, 0.3136, 0.403),
                ),
            ),
        ),
        "mutex, 1 core, SCHED_RR": Curve(
            _BEHIND_A_MUTEX,
            (
                Column(
                    "CPython, one core",
                    "multiprocessing",
                    (0.0273, 0.07909, 0.1736, 0.3266, 0.5532, 0.8684, 1.291, 1.828, 2.502),
                ),
            ),
        ),
        "mutex, all cores, SCHED_RR": Curve(
            _BEHIND_A_MUTEX,
            (
                Column(
                    "CPython, two cores",
                    "multiprocessing",
                    (0.01546, 0.04456, 0.09491, 0.1764, 0.2971, 0.4615, 0.6689, 0.9381, 1.288),
                ),
            ),
        ),
    },
}
"""Published tables by experiment and series: a dual-core laptop, medians of as many runs as fit into a minute."""

_LOOP, _CALLS = "1,000,000 imports", "1,000,000 imports, system calls"
_SHORT_HG = "hg --version -q"

POINTS: dict[str, tuple[Point, ...]] = {
    "imports": (
        Point("Python 2.5.1, pthread: time", 2.061, "s", _LOOP, "stock", "elapsed_s"),
        Point("Python 2.5.1, pthread: user time", 1.728, "s", _LOOP, "stock", "user_s"),
        Point("Python 2.5.1, pthread: system time", 0.332, "s", _LOOP, "stock", "system_s"),
        Point("Python 2.5.1, GNU pth: time", 1.572, "s", _LOOP, "green", "elapsed_s"),
        Point("Python 2.5.1, GNU pth: user time", 1.560, "s", _LOOP, "green", "user_s"),
        Point("Python 2.5.1, GNU pth: system time", 0.008, "s", _LOOP, "green", "system_s"),
        Point("Python 2.5.1, pthread: futex calls", 1_000_020, "", _CALLS, "stock", "calls.futex"),
        Point("Python 2.5.1, GNU pth: futex calls", 0, "", _CALLS, "green", "calls.futex"),
    ),
    "startup": (
        Point("start of Python 3.7", 14.5, "ms", "python -c pass", "plain", "elapsed_ms"),
        Point("hg dispatches a command, Python 2.7", 50.0, "ms", _SHORT_HG, "plain", "elapsed_ms"),
        Point("hg over git", 45.8, "×", _SHORT_HG, "plain", "elapsed_ms", over_case="git --version"),
    ),
    "suite": (
        Point("25,000 starts of Python 3.7: processor time", 360.0, "s", "25,000 × python -c pass", "plain", "cpu_s"),
    ),
    "web": (
        Point(
            "GIL and condition, Linux: requests per second over stock",
            1.30,
            "×",
            "p = 10, no CPU-bound thread",
            "both",
            "requests_per_s",
            over_variant="stock",
        ),
    ),
    "pairs": (
        Point(
            "native condition, Windows: hand-overs over stock",
            2.67,
            "×",
            "condition, alone",
            "primitives",
            "handovers_per_s",
            over_variant="stock",
        ),
        Point(
            "native condition over native lock, Windows",
            0.6,
            "×",
            "condition, alone",
            "primitives",
            "handovers_per_s",
            over_case="lock, alone",
        ),
    ),
}
"""Published figures by experiment. Where the document has another interpreter, `what` names it."""

_PICTURES = (
    "the tables of the post",
    "they are pictures, so only the figures in its text stand here; each feature has its own columns below",
)
_PATCHES = (
    "the patches of Python 2.7 and their builds",
    "they are a fork of an interpreter that has ended; the features here are unsnarl's, on this interpreter",
)
_WINDOWS = ("the columns of Windows", "unsnarl runs on Linux")
_LAPTOP = (
    "the laptop with two cores",
    "compare the growth; the times of all cores are comparable only on a machine with two cores",
)

NOT_REPEATED: dict[str, tuple[tuple[str, str], ...]] = {
    "imports": (
        (
            "Python 2.5.1 built with GNU pth",
            "no CPython 3 can be built with it; threads in user space (`green`) stand for it, and Python 2.7 for 2.5",
        ),
    ),
    "futexes": (
        (
            "the application with 15,192 futex calls among 19,142 system calls",
            "the document does not name it; a queue between two threads stands for it",
        ),
    ),
    "squares": (_LAPTOP,),
    "processes": (_LAPTOP,),
    "startup": (
        ("6.4 ms for a start of Python 2.7", "`--python` measures interpreters in which unsnarl can be installed"),
        ("100 to 150 ms with common extensions of Mercurial", "the document does not name the extensions"),
        ("6.94 ms for nine modules of zope.interface", "the change is part of Mercurial since 2018"),
    ),
    "suite": (
        (
            "processor time of Mercurial's tests, 4,450 s and 3,980 s",
            "the release of 2018 ran on Python 2.7; `bench.warm.mercurial` measures the tests of today's",
        ),
        ("37:43 and 9:06 minutes with `chg` on macOS", "unsnarl runs on Linux, and the cause was a lock of APFS"),
    ),
    "efficiency": (_PICTURES, _PATCHES, _WINDOWS),
    "pairs": (_PICTURES, _PATCHES, _WINDOWS),
    "web": (_PICTURES, _PATCHES, _WINDOWS),
}
"""What cannot be repeated, and why."""
