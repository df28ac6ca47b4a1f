"""An already imported module is imported in a loop: the time, and the system calls.

Python 2.5 acquired and released its import lock with a futex call each time: 1,000,020 calls in the
document's loop of a million, none with threads in user space.
"""

from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.variants import GREEN, PYTHON2, SCHEDULER, STOCK

COUNT, QUICK_COUNT = 1_000_000, 100_000


def cases(count: int) -> tuple[Case, ...]:
    """Return the timed case, and the case whose system calls are counted."""
    arguments = (str(count),)
    return (
        Case(f"{count:,} imports", arguments, expected_s=0.2 + count * 5e-7),
        Case(f"{count:,} imports, system calls", arguments, expected_s=0.5 + count * 5e-7, is_traced=True),
    )


EXPERIMENT = Experiment(
    name="imports",
    source="000, 001: Python without futex calls",
    title="Imports in a loop",
    question="Does a program without any thread pay for synchronisation when it imports a module again?",
    program="import_loop.py",
    figures=(
        Figure("elapsed_s", "time of the loop", "s"),
        Figure("user_s", "user time", "s"),
        Figure("system_s", "system time", "s"),
    ),
    variants=(STOCK, SCHEDULER, GREEN, PYTHON2),
    cases=cases(COUNT),
    quick=cases(QUICK_COUNT),
    pairs=5,
    reading="User and system time are those of the whole process, its start included. The futex calls that are left "
    "are those of the interpreter's start-up; `unsnarl run` starts no other interpreter than the program's.",
)
