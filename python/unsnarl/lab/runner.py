"""Carry out a plan: run after run, results kept after each pair, an eye on the clock.

Invariant: a run that fails is a result as well, and never ends the plan; an
interrupt does, with everything kept that was measured before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from unsnarl.lab import presence
from unsnarl.lab.experiment import Case, Experiment
from unsnarl.lab.plan import Planned, planned
from unsnarl.lab.process import Figures, RunFailed, measure
from unsnarl.lab.store import Results


class Session(NamedTuple):
    """One experiment with one interpreter: its runs, and where they are kept."""

    results: Results
    runs: list[Planned]
    absent: dict[str, str]


def absent_variants(experiment: Experiment, python: str) -> dict[str, str]:
    """Return the variants that cannot be measured here, with the reasons."""
    reasons: dict[str, str] = {}
    for variant in experiment.variants:
        reason = next(filter(None, (presence.reason_against(need, python) for need in variant.needs)), None)
        if reason is not None:
            reasons[variant.name] = reason
    return reasons


def possible_cases(cases: Sequence[Case]) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that can be measured here, and the reasons against the others."""
    possible: list[Case] = []
    reasons: dict[str, str] = {}
    for case in cases:
        reason = presence.reason_against_strace() if case.is_traced else None
        if reason is None and case.confinement.is_round_robin:
            reason = presence.reason_against_round_robin()
        if reason is None:
            possible.append(case)
        else:
            reasons[case.name] = reason
    return possible, reasons


def prepare(
    experiment: Experiment, cases: Sequence[Case], python: str, results: Results, pairs: int, command: str
) -> Session:
    """Plan an experiment's runs with one interpreter, continuing what is kept."""
    possible, impossible = possible_cases(cases)
    absent = absent_variants(experiment, python)
    results.note(absent | impossible, possible, command)
    runs = list(planned(experiment, possible, python, absent, pairs, results.pairs_kept()))
    return Session(results, runs, absent | impossible)


def carry_out(
    sessions: Sequence[Session], on_run: Callable[[Planned, Figures | str], None], budget_s: float | None = None
) -> int:
    """Measure everything planned; return how many runs were left out for want of time.

    Args:
        sessions: what to measure.
        on_run: called after each run with its figures, or with why there are none.
        budget_s: seconds for all of it; None for as long as it takes.

    Raises:
        StoreError: results cannot be written.
    """
    until_s = None if budget_s is None else time.monotonic() + budget_s
    left_out = 0
    for session in sessions:
        session.results.write()
        for place, item in enumerate(session.runs):
            left_s = None if until_s is None else until_s - time.monotonic()
            outcome = _outcome(item, left_s)
            if outcome is None:
                left_out += 1
                continue
            session.results.add(item.run.case.name, item.run.variant.name, item.pair, outcome)
            on_run(item, outcome)
            if _ends_pair(session.runs, place):
                session.results.write()
    return left_out


def _outcome(item: Planned, left_s: float | None) -> Figures | str | None:
    """Carry out one run; None if the time is over before it would end."""
    run = item.run
    if left_s is not None:
        if left_s < run.case.expected_s:
            return None
        run = run._replace(case=run.case._replace(limit_s=min(run.case.limit_s, left_s)))
    try:
        return measure(run)
    except RunFailed as failure:
        return str(failure)


def _ends_pair(runs: Sequence[Planned], place: int) -> bool:
    following = runs[place + 1 : place + 2]
    return not following or (following[0].pair, following[0].run.case) != (runs[place].pair, runs[place].run.case)


def reasons_in_words(absent: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, the things it keeps out together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in absent.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]
