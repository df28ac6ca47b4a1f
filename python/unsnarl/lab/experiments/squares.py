"""The square problem with threads: starting n, n behind a mutex, waking n; at the document's sizes."""

from unsnarl.lab.experiment import (
    ANYWHERE,
    LIMIT_S,
    ONE_CORE,
    ONE_CORE_ROUND_ROBIN,
    ROUND_ROBIN,
    Case,
    Confinement,
    Experiment,
    Figure,
)
from unsnarl.lab.variants import AIOLOGIC, BOTH, PRIMITIVES, PYPY, SCHEDULER, STOCK

PROGRAMS = ("start", "mutex", "semaphore")
SIZES = tuple(range(100, 1000, 100))
"""The document's sizes."""
FEWER_SIZES = (100, 200, 400, 800)
QUICK_SIZES = (25, 50, 100)

STOCK_S_AT_100 = 0.25
"""Seconds of the slowest program with 100 threads on stock; the time grows with the square."""

ROUND_ROBIN_LIMIT_S = 30.0
"""Under SCHED_RR a thread that runs on uses up its 100 ms: some variants exceed this limit at 100 threads."""

OURS = (STOCK.name, SCHEDULER.name, PRIMITIVES.name, BOTH.name)
PYPY_LARGEST = 200
"""Above this size, PyPy takes more than a minute for one run."""
PYPY_SMALLEST = 50
"""An additional size for PyPy and stock: a growth needs at least three sizes."""


def cases(program: str, sizes: tuple[int, ...], confinement: Confinement) -> tuple[Case, ...]:
    """Return one series."""
    limit_s = ROUND_ROBIN_LIMIT_S if confinement.is_round_robin else LIMIT_S
    expected_s = {size: 0.2 + STOCK_S_AT_100 * (size / 100) ** 2 / 3 for size in sizes}
    return tuple(
        Case.of_size(program, size, confinement, expected_s[size], variants_of(program, size), limit_s)
        for size in sizes
    )


def variants_of(program: str, size: int) -> tuple[str, ...]:
    """Return the variants of a case; aiologic has no part in ``start``, which uses no primitive of the program."""
    if size == PYPY_SMALLEST:
        return STOCK.name, PYPY.name
    aiologic = () if program == "start" else (AIOLOGIC.name,)
    return (*OURS, *aiologic, *((PYPY.name,) if size <= PYPY_LARGEST else ()))


EXPERIMENT = Experiment(
    name="squares",
    source="002: the square problem",
    title="Squares of threads",
    question="Does the time to start or to wake n threads that keep running grow with n, or with its square?",
    program="squares.py",
    figures=(Figure("elapsed_s", "time", "s"),),
    variants=(STOCK, SCHEDULER, PRIMITIVES, BOTH, AIOLOGIC, PYPY),
    cases=(
        *(case for program in PROGRAMS for case in cases(program, (PYPY_SMALLEST, *SIZES), ANYWHERE)),
        *(case for program in PROGRAMS for case in cases(program, (PYPY_SMALLEST, *SIZES), ONE_CORE)),
        *(case for program in PROGRAMS for case in cases(program, FEWER_SIZES, ROUND_ROBIN)),
        *(case for program in PROGRAMS for case in cases(program, FEWER_SIZES, ONE_CORE_ROUND_ROBIN)),
    ),
    quick=tuple(case for program in PROGRAMS for case in cases(program, QUICK_SIZES, ANYWHERE)),
    pairs=3,
    reading="The exponent is fitted to the medians: 1 is linear, 2 the square. Under `primitives` and `both` the "
    "standard library's own uses are replaced as well, so that `Thread.start` waits for an event of unsnarl. "
    f"PyPy runs up to n = {PYPY_LARGEST}: above, one run takes more than a minute. "
    f"Under SCHED_RR a run is ended after {ROUND_ROBIN_LIMIT_S:g} s.",
)
