"""The square problem with processes: starting n processes, and n processes behind a mutex."""

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
    Variant,
)
from unsnarl.lab.variants import IPC, PYPY

SIZES = {"start": tuple(range(10, 100, 10)), "mutex": tuple(range(40, 400, 40))}
"""The document's sizes."""
FEWER_SIZES = {"start": (10, 30, 60, 90), "mutex": (40, 120, 240, 360)}
ROUND_ROBIN_SIZES = {"start": (10, 30, 60, 90), "mutex": (10, 20, 30, *FEWER_SIZES["mutex"])}
"""Under SCHED_RR every waiting process can use up its 100 ms: 40 behind a mutex can take more than a minute."""
ROUND_ROBIN_LIMIT_S = 30.0
QUICK_SIZES = {"start": (5, 10, 20), "mutex": (5, 10, 20)}
CONFINED = ((ONE_CORE, SIZES), (ROUND_ROBIN, ROUND_ROBIN_SIZES), (ONE_CORE_ROUND_ROBIN, ROUND_ROBIN_SIZES))

PYPY_LARGEST = 240
"""Above this size, PyPy takes half a minute and more for one run behind the mutex."""

MULTIPROCESSING = Variant("multiprocessing", "multiprocessing")
NOT_PYPY = (MULTIPROCESSING.name, IPC.name)


def cases(program: str, sizes: tuple[int, ...], confinement: Confinement) -> tuple[Case, ...]:
    """Return one series."""
    longest = SIZES[program][-1]
    is_slow = confinement.is_round_robin and program == "mutex"
    return tuple(
        Case.of_size(
            program,
            size,
            confinement,
            min(0.05 * size**2, ROUND_ROBIN_LIMIT_S) if is_slow else 0.3 + 1.7 * (size / longest) ** 2,
            NOT_PYPY if is_slow or size > PYPY_LARGEST else None,
            ROUND_ROBIN_LIMIT_S if confinement.is_round_robin else LIMIT_S,
        )
        for size in sizes
    )


EXPERIMENT = Experiment(
    name="processes",
    source="002: the square problem",
    title="Squares of processes",
    question="Does the kernel's scheduler show the same growth with processes, and what do locks of our own change?",
    program="processes.py",
    figures=(Figure("elapsed_s", "time", "s"),),
    variants=(MULTIPROCESSING, IPC, PYPY),
    cases=(
        *(case for program in SIZES for case in cases(program, SIZES[program], ANYWHERE)),
        *(case for c, sizes in CONFINED for program in SIZES for case in cases(program, sizes[program], c)),
    ),
    quick=tuple(case for program in SIZES for case in cases(program, QUICK_SIZES[program], ANYWHERE)),
    pairs=3,
    reading="Processes are forked; with `unsnarl.ipc` by `start_together`. Apart from the lock, they share "
    f"plain memory in every variant. PyPy runs up to n = {PYPY_LARGEST}: above, one run behind the mutex takes "
    "half a minute and more. So does n = 40 under SCHED_RR, where PyPy is left out of the mutex. "
    f"Under SCHED_RR a run is ended after {ROUND_ROBIN_LIMIT_S:g} s.",
)
