"""The ways that are measured: which interpreter runs which program, how it is started, and what it is called.

Pure. Invariant: all ways but those of another interpreter run on the same one, and all do the same work.
"""

from __future__ import annotations

from dataclasses import dataclass

STOCK, AGAIN, UNSNARL = "stock", "stock again", "unsnarl run"
HERE, FREE_THREADED, PYPY = "here", "free-threaded", "pypy"
SWITCH_INTERVAL_S = 0.0001


@dataclass(frozen=True, slots=True)
class Way:
    """A way: its name, the program, the interpreter's name, words after the program's own, and whether unsnarl runs."""

    name: str
    program: str
    interpreter: str = HERE
    words: tuple[str, ...] = ()
    under_unsnarl: bool = False


WAYS = (
    Way(STOCK, "threads"),
    Way(AGAIN, "threads"),
    Way(UNSNARL, "threads", under_unsnarl=True),
    Way(f"`sys.setswitchinterval({SWITCH_INTERVAL_S})`", "threads", words=(str(SWITCH_INTERVAL_S),)),
    Way("asyncio, tasks that give way", "tasks"),
    Way("gevent, greenlets that give way", "greenlets"),
    Way("processes", "processes"),
    Way("sub-interpreters", "interpreters"),
    Way("free-threaded CPython", "threads", FREE_THREADED),
    Way("PyPy", "threads", PYPY),
)


def had(interpreters: set[str]) -> list[Way]:
    """Return the ways whose interpreter is there."""
    return [way for way in WAYS if way.interpreter in interpreters]
