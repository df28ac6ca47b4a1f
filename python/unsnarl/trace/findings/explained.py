"""What one finding explains of another: that one is left out.

Pure: findings in, findings out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unsnarl.trace import thread_groups
from unsnarl.trace.findings.finding import Finding


def _always(_explained: Finding, _by: Finding) -> bool:
    return True


def _of_one_thread(explained: Finding, by: Finding) -> bool:
    return explained.thread == by.thread


def _while_it_spins(explained: Finding, by: Finding) -> bool:
    """Tell whether a thread kept the GIL where it spins: a loop of its own is not all that it does."""
    is_there = explained.place == by.place or not by.figures["in_own_loop"]
    return is_there and _of_one_thread(explained, by)


def _of_a_timer(explained: Finding, by: Finding) -> bool:
    """Tell whether a thread that waits in the standard library is named as the threads of the timers are."""
    first, _, _ = str(by.thread).partition(" … ")
    is_of_kind = thread_groups.kind_of(str(explained.thread)) == thread_groups.kind_of(first)
    return is_of_kind and str(explained.place).endswith(" in Condition.wait")


@dataclass(frozen=True, slots=True)
class Rule:
    """Findings that explain others.

    Attributes:
        by: the kinds that explain.
        of: the kinds that are explained.
        holds: tells for an explained finding, and one that explains it, whether it really does.
    """

    by: tuple[str, ...]
    of: tuple[str, ...]
    holds: Callable[[Finding, Finding], bool] = _always


RULES = (
    # Where tasks or threads wait for a lock otherwise, that may be the cause.
    Rule(("task-waits", "stuck", "empty-pool", "shared-lock"), ("no-lock-contention",)),
    # Where a pool is full, tasks wait for its workers.
    Rule(("full-pool",), ("task-waits",), lambda explained, _: bool(explained.figures["is_for_worker"])),
    # The waits of stuck threads have no holder, since nobody released the lock.
    Rule(("stuck",), ("contended-lock",), lambda explained, _: explained.figures["holder"] == "?"),
    # A thread that sleeps with a lock that others wait for does not look for anything.
    Rule(
        ("contended-lock",),
        ("polling",),
        lambda explained, by: bool(by.figures["across_io"]) and explained.place == by.place,
    ),
    # A thread that spins is in no long C call, but may keep the GIL while it has no processor.
    Rule(("spinning",), ("long-hold",), _while_it_spins),
    # Many rounds of a loop that nobody watches look like one call.
    Rule(
        ("rounds",),
        ("loop-stall",),
        lambda explained, by: (
            not by.figures["is_watched"] and bool(explained.figures["computes"]) and _of_one_thread(explained, by)
        ),
    ),
    # A loop that goes round looks into its selector in each round.
    Rule(("rounds",), ("spinning", "short-calls"), _of_one_thread),
    # The thread of a timer is woken by its deadline, as it wants to be.
    Rule(("thread-per-timer",), ("polling",), _of_a_timer),
    # Of many threads, neither all stacks nor all waits have a cause alone.
    Rule(("thread-per-timer", "thread-per-task"), ("lock-waits", "gil-waits", "futex-storm")),
)
"""The rules, in the order in which they apply: what one has left out explains nothing to the next."""


def without_explained(found: list[Finding]) -> list[Finding]:
    """Return the findings that no other one explains."""
    for rule in RULES:
        by = [finding for finding in found if finding.kind in rule.by]
        found = [
            finding
            for finding in found
            if finding.kind not in rule.of or not any(rule.holds(finding, one) for one in by)
        ]
    return found
