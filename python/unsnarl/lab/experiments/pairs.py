"""A producer and a consumer over a lock and over a condition, with and without a CPU-bound thread."""

from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.variants import AIOLOGIC, FEATURES, GREEN, GREEN_PRIMITIVES, PYPY

WAYS = ("lock", "condition")
SECONDS, QUICK_SECONDS = 1.0, 0.3
ALONE_ONLY = (GREEN.name, GREEN_PRIMITIVES.name)
"""Variants that cannot run next to a thread that never waits: green threads would never be switched."""

VARIANTS = (*FEATURES, AIOLOGIC, GREEN, GREEN_PRIMITIVES, PYPY)


def cases(seconds: float) -> tuple[Case, ...]:
    """Return both ways, without and with a CPU-bound thread."""
    return tuple(
        Case(
            f"{way}, {'one CPU-bound thread' if hogs else 'alone'}",
            (way, "--hogs", str(hogs), "--seconds", str(seconds)),
            variants=tuple(v.name for v in VARIANTS if not hogs or v.name not in ALONE_ONLY),
            expected_s=seconds + 0.3,
        )
        for way in WAYS
        for hogs in (0, 1)
    )


EXPERIMENT = Experiment(
    name="pairs",
    source="004: PythonPlus",
    title="Producer and consumer",
    question="How often a second do two threads hand over to each other, and what does a CPU-bound thread do to that?",
    program="pairs.py",
    figures=(
        Figure("handovers_per_s", "hand-overs per second", is_better_higher=True),
        Figure("work_per_s", "work of the CPU-bound thread", is_better_higher=True),
    ),
    variants=VARIANTS,
    cases=cases(SECONDS),
    quick=cases(QUICK_SECONDS),
    pairs=5,
    reading="With aiologic, whose locks belong to their holder, two semaphores stand for the two locks.",
)
