"""Carries out a plan one run after another, stores the results after each pair, and keeps to a time budget.

Invariant: a failed run is a result and does not end the plan. An interrupt ends the plan, and earlier
results are stored. A variant that exceeded its time limit is not run again, neither in a later pair nor
at a larger size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from unsnarl.lab import presence
from unsnarl.lab.experiment import Case, Experiment, Figures
from unsnarl.lab.results.store import Results
from unsnarl.lab.running.plan import Planned, planned
from unsnarl.lab.running.process import RunFailed, TimedOut, measure


class Session(NamedTuple):
    """One experiment with one interpreter: its planned runs, and the file of their results."""

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


def possible_cases(cases: Sequence[Case], python: str) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that can be measured here, and the reasons against the others."""
    possible: list[Case] = []
    reasons: dict[str, str] = {}
    for case in cases:
        reason = presence.reason_against_strace() if case.is_traced else None
        if reason is None and case.confinement.is_round_robin:
            reason = presence.reason_against_round_robin()
        if reason is None and case.command:
            reason = presence.reason_against_command(python, case.command)
        if reason is None:
            possible.append(case)
        else:
            reasons[case.name] = reason
    return possible, reasons


def prepare(
    experiment: Experiment, cases: Sequence[Case], python: str, results: Results, pairs: int, command: str
) -> Session:
    """Plan an experiment's runs with one interpreter, continuing the stored results."""
    possible, impossible = possible_cases(cases, python)
    absent = absent_variants(experiment, python)
    results.note(absent | impossible, possible, command)
    runs = list(planned(experiment, possible, python, absent, pairs, results.pairs_kept()))
    return Session(results, runs, absent | impossible)


class Account:
    """Counts the outcomes of the runs of a plan."""

    def __init__(self) -> None:
        """Start with zero runs."""
        self.measured = 0
        self.late = 0
        """Runs that exceeded their time limit, or were skipped because an earlier run did."""
        self.failures: list[str] = []
        """Runs without figures for any other reason, each with its experiment, case, variant and reason."""
        self.left_out = 0
        """Runs for which the time budget of the plan did not suffice."""

    def is_good(self) -> bool:
        """Tell whether something was measured and no run failed except by its time limit."""
        return bool(self.measured) and not self.failures


def carry_out(
    sessions: Sequence[Session], on_run: Callable[[Planned, Figures | str], None], budget_s: float | None = None
) -> Account:
    """Carry out all planned runs; return the count of their outcomes.

    Args:
        sessions: the planned runs.
        on_run: called after each run with its figures, or with the reason why there are none.
        budget_s: seconds for all runs; None for no limit.

    Raises:
        StoreError: results cannot be written.
    """
    until_s = None if budget_s is None else time.monotonic() + budget_s
    account = Account()
    for session in sessions:
        session.results.write()
        for index, item in enumerate(session.runs):
            left_s = None if until_s is None else until_s - time.monotonic()
            outcome = _outcome(item, session.results, left_s)
            if outcome is None:
                account.left_out += 1
            else:
                _keep(item, outcome, session.results, account)
                on_run(item, str(outcome) if isinstance(outcome, RunFailed) else outcome)
            if _ends_pair(session.runs, index):
                session.results.write()
    return account


def _keep(item: Planned, outcome: Figures | RunFailed, results: Results, account: Account) -> None:
    """Add the outcome of a run to the results and to the account."""
    names = item.run.case.name, item.run.variant.name, item.pair
    if isinstance(outcome, TimedOut) and outcome.limit_s >= item.run.case.limit_s:
        account.late += 1
        results.add(*names, str(outcome), late_s=outcome.limit_s, is_spared=outcome.is_spared)
    elif isinstance(outcome, RunFailed):
        account.failures.append(f"{item.run.experiment.name}: {names[0]}, {names[1]}: {outcome}")
        results.add(*names, str(outcome))
    else:
        account.measured += 1
        results.add(*names, outcome)


def _outcome(item: Planned, results: Results, left_s: float | None) -> Figures | RunFailed | None:
    """Carry out one run, unless its variant has timed out before; None if the remaining time does not suffice."""
    run = item.run
    if results.is_late(run.case, run.variant.name):
        return TimedOut(run.case.limit_s, is_spared=True)
    is_cut = left_s is not None and left_s < run.case.limit_s
    if left_s is not None and is_cut:
        if left_s < run.case.expected_s:
            return None
        run = run._replace(case=run.case._replace(limit_s=left_s))
    try:
        return measure(run)
    except TimedOut as failure:
        return None if is_cut and failure.limit_s == run.case.limit_s else failure
    except RunFailed as failure:
        return failure


def _ends_pair(runs: Sequence[Planned], index: int) -> bool:
    following = runs[index + 1 : index + 2]
    return not following or (following[0].pair, following[0].run.case) != (runs[index].pair, runs[index].run.case)
