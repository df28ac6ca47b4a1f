"""The reasons of losses that are known and kept: what a program pays for, and what its user gets or can do.

A reason names the cases it holds for. A loss of any other case has none, and is a defect. Pure.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import NamedTuple


class Reason(NamedTuple):
    """Why a case may lose."""

    cases: tuple[str, ...]
    """Patterns of names of cases."""
    text: str


REASONS = (
    Reason(
        ("main computes, * threads saturate",),
        "The other threads always want the GIL, and are served first: the main thread computes for the least share "
        "that CPU-bound threads keep, a fifth unless `--batch-share` or `install(batch_share=…)` sets another one. "
        "With the stock interpreter it is the others that hardly run: how much more often they do is in the row. On "
        "one processor their calls never block, so they are CPU-bound, too, but for a single one of them: the "
        "processor's time is divided, and what the main thread lacks the others have.",
    ),
    Reason(
        ("main computes, * threads mostly wait",),
        "A thread that wakes gets the GIL then, and not at the end of the main thread's slice, so each wake-up takes "
        "two switches that the main thread pays for. The stock interpreter lets it wait for a slice of 5 ms, so the "
        "threads wake several times less often in the same time.",
    ),
    Reason(
        ("start: *",),
        "The scheduler is installed once in a process, when its first thread starts, and the launcher reads its own "
        "files. A program that runs for seconds does not notice it, a command of some milliseconds does: do not start "
        "such ones with `unsnarl run`.",
    ),
)


def reason_of(case: str) -> Reason | None:
    """Return the reason why a case may lose; None if no reason is known."""
    return next((reason for reason in REASONS if any(fnmatch(case, pattern) for pattern in reason.cases)), None)
