"""The plan: every measured case with its name, program and arguments. Data, no behaviour.

Five pairs of a case take about a minute, so the plan can be measured in pieces, and any piece repeated.
"""

from __future__ import annotations

from typing import NamedTuple

from unsnarl.demo.variant import STOCK, UNSNARL, VARIANTS

HOGS = (1, 2, 4, 8)
THREADS = (100, 200, 400, 800, 1600, 3200)
CONNECTIONS = (1, 10, 50)
SQUARE_LIMIT = 800
"""Threads beyond which a stock interpreter needs minutes for a square program."""

SHORT_WARMUP = ("--warmup", "0.2")
"""For small differences, where many short pairs show more than a few long ones."""


class Case(NamedTuple):
    """One thing to measure."""

    name: str
    program: str
    """Module in ``bench.gil``."""
    arguments: tuple[str, ...]
    seconds: float | None = None
    """Length of the window, for programs that have one."""
    variants: tuple[str, ...] = VARIANTS
    limit_s: float = 60.0
    """Seconds after which one run counts as hung."""
    repeat: int = 1
    """Multiple of the usual number of pairs that the case needs."""


def echo_cases() -> list[Case]:
    """Return the echo thread next to 0, 1, 2, 4, 8 hogs in a closed loop, and paced next to hogs."""
    closed = [
        Case(f"echo-{protocol}-k{k}", "echo", ("--protocol", protocol, "-k", str(k)), 1.5)
        for protocol in ("udp", "tcp")
        for k in (0, *HOGS)
    ]
    paced = [
        Case(f"echo-paced-k{k}", "echo", ("--rate", "1000", "-k", str(k), *SHORT_WARMUP), 1.0, repeat=3) for k in HOGS
    ]
    return closed + paced


def cpu_cases() -> list[Case]:
    """Return the hogs alone."""
    return [Case(f"cpu-k{k}", "cpu", ("-k", str(k), *SHORT_WARMUP), 1.0, repeat=3) for k in HOGS]


def square_cases() -> list[Case]:
    """Return the three square programs over their numbers of threads."""
    return [
        Case(
            f"squares-{program}-n{n}",
            "squares",
            ("--program", program, "-n", str(n)),
            variants=VARIANTS if n <= SQUARE_LIMIT else (UNSNARL,),
            # Whether stock needs quadratic time here depends on chance: a few pairs may not show it.
            repeat=3 if program == "wakeup" and n <= SQUARE_LIMIT else 1,
        )
        for program in ("start", "mutex", "wakeup")
        for n in THREADS
    ]


def web_cases() -> list[Case]:
    """Return both web servers under every load, with and without hogs, and wrk as a check of our own load."""
    own = [
        Case(f"web-{server}-c{c}-k{k}", "web", ("--load", "own", "--server", server, "-c", str(c), "-k", str(k)), 2)
        for server in ("stdlib", "gunicorn")
        for k in (0, 1, 4)
        for c in CONNECTIONS
    ]
    with_wrk = [
        Case(f"web-wrk-c10-k{k}", "web", ("--load", "wrk", "--server", "stdlib", "-c", "10", "-k", str(k)), 2)
        for k in (0, 4)
    ]
    return own + with_wrk


def overhead_cases() -> list[Case]:
    """Return the costs without contention; instruction counts need no third variant."""
    return [
        Case("overhead-release", "overhead", ("--measure", "release")),
        Case("overhead-release-threaded", "overhead", ("--measure", "release", "--threaded")),
        Case("overhead-program", "overhead", ("--measure", "program", "--rounds", "3000")),
        Case(
            "overhead-instructions",
            "overhead",
            ("--measure", "program", "--instructions"),
            variants=(STOCK, UNSNARL),
        ),
    ]


def starvation_cases() -> list[Case]:
    """Return both abuses of wake-ups by 100 threads against one hog."""
    return [
        Case(f"starvation-{abuse}", "starvation", ("--abuse", abuse, "--abusers", "100", "-k", "1"), 3.0)
        for abuse in ("sleep", "lock")
    ]


def cases() -> list[Case]:
    """Return every case, in the order it is measured."""
    return [
        *echo_cases(),
        *cpu_cases(),
        *square_cases(),
        *web_cases(),
        *overhead_cases(),
        *starvation_cases(),
    ]
