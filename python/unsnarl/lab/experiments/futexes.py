"""A queue between two threads: the number and the kinds of system calls per item."""

from unsnarl.lab.experiment import Case, Experiment, Figure
from unsnarl.lab.variants import BOTH, GREEN, GREEN_PRIMITIVES, PRIMITIVES, PYTHON2, SCHEDULER, STOCK

ITEMS, QUICK_ITEMS = 20_000, 2_000


def cases(items: int) -> tuple[Case, ...]:
    """Return the timed case, and the case whose system calls are counted."""
    arguments = (str(items),)
    return (
        Case(f"{items:,} items", arguments, expected_s=0.2 + items * 2e-5),
        Case(f"{items:,} items, system calls", arguments, expected_s=0.4 + items * 1e-4, is_traced=True),
    )


EXPERIMENT = Experiment(
    name="futexes",
    source="000, 001: Python without futex calls",
    title="A queue between two threads",
    question="How many system calls does a threaded program make, of which kinds, and how many are left when its "
    "threads run in user space?",
    program="queue_pair.py",
    figures=(
        Figure("items_per_s", "items per second", is_better_higher=True),
        Figure("user_s", "user time", "s"),
        Figure("system_s", "system time", "s"),
    ),
    variants=(STOCK, SCHEDULER, PRIMITIVES, BOTH, GREEN, GREEN_PRIMITIVES, PYTHON2),
    cases=cases(ITEMS),
    quick=cases(QUICK_ITEMS),
    pairs=7,
    reading="The queue has room for ten items. System calls are those of the whole process, its start included.",
)
