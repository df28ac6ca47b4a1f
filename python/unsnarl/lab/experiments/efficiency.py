"""The efficiency of two CPU-bound threads: their joint throughput as a share of one thread's."""

from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.variants import FEATURES, PYPY

SECONDS, QUICK_SECONDS = 1.0, 0.2


def case(seconds: float) -> Case:
    """Return the case, with windows of ``seconds``."""
    return Case("two threads", ("--seconds", str(seconds)), expected_s=2.2 * seconds + 0.2)


EXPERIMENT = Experiment(
    name="efficiency",
    source="004: PythonPlus",
    title="Efficiency of two CPU-bound threads",
    question="What is lost between two threads that compute, against one that computes alone?",
    program="efficiency.py",
    figures=(
        Figure("efficiency", "e", "", is_better_higher=True),
        Figure("together_per_s", "additions by two", is_better_higher=True),
        Figure("alone_per_s", "additions by one", is_better_higher=True),
    ),
    variants=(*FEATURES, PYPY),
    cases=(case(SECONDS),),
    quick=(case(QUICK_SECONDS),),
    pairs=9,
    reading="e = 1: nothing is lost. Both are measured in the same process, one after the other.",
)
