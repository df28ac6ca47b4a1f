"""A plan is carried out to its end: a failure is a result, and a variant that timed out is not run again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_lab_report import MACHINE
from unsnarl.lab.experiment import Case, Experiment, Figure, Figures
from unsnarl.lab.results.store import Results
from unsnarl.lab.running.plan import Planned
from unsnarl.lab.running.process import Run, RunFailed, TimedOut
from unsnarl.lab.running.runner import Account, carry_out, possible_cases, prepare
from unsnarl.lab.variants import STOCK

LIMIT_S = 30.0
CASES = tuple(
    Case(f"start, n = {n}", (str(n),), series="start", size=n, limit_s=LIMIT_S, expected_s=1.0) for n in (1, 2, 4)
)
OTHER = STOCK._replace(name="other")


def carried_out(
    folder: Path, measure: Callable[[Run], Figures], pairs: int = 2, budget_s: float | None = None
) -> tuple[Account, list[tuple[str, str, int]], list[dict[str, Any]]]:
    """Carry out a plan; return its account, the measured runs, and the stored runs."""
    measured: list[tuple[str, str, int]] = []

    def note(run: Run) -> Figures:
        measured.append((run.case.name, run.variant.name, len(measured)))
        return measure(run)

    experiment = Experiment(
        "one", "", "One", "Why?", "", (Figure("elapsed_s", "time"),), (STOCK, OTHER), CASES, (), measure=note
    )
    results = Results(folder, experiment, MACHINE)
    session = prepare(experiment, CASES, "python", results, pairs, "command")
    told: list[Planned] = []

    def tell(item: Planned, outcome: Figures | str) -> None:
        assert isinstance(outcome, (dict, str))
        told.append(item)

    account = carry_out([session], tell, budget_s)
    kept: list[dict[str, Any]] = Results(folder, experiment, MACHINE).runs
    assert len(told) == account.measured + account.late + len(account.failures)
    return account, measured, kept


def test_what_took_too_long_is_not_tried_in_later_pairs_or_at_larger_sizes(tmp_path: Path) -> None:
    def measure(run: Run) -> Figures:
        if run.variant == STOCK and run.case.size == 2:
            raise TimedOut(run.case.limit_s)
        return {"elapsed_s": 1.0}

    account, measured, kept = carried_out(tmp_path, measure)
    assert [(case, variant) for case, variant, _ in measured if variant == "stock"] == [
        (CASES[0].name, "stock"),
        (CASES[0].name, "stock"),
        (CASES[1].name, "stock"),
    ]
    assert len([variant for _, variant, _ in measured if variant == "other"]) == 6
    assert (account.measured, account.late, len(account.failures), account.is_good()) == (8, 4, 0, True)
    late = [(run["case"], run["pair"], run["failed"]) for run in kept if "late_s" in run]
    spared = "not run: that or a smaller size has given no result within 30 s"
    assert late == [
        (CASES[1].name, 0, "no result within 30 s"),
        (CASES[1].name, 1, spared),
        (CASES[2].name, 0, spared),
        (CASES[2].name, 1, spared),
    ]
    _, again, _ = carried_out(tmp_path, measure)
    assert len([variant for _, variant, _ in again if variant == "stock"]) == 2, "what is kept counts as well"


def test_a_run_that_the_budget_cut_short_is_left_out_and_no_result(tmp_path: Path) -> None:
    def measure(run: Run) -> Figures:
        assert run.case.limit_s < LIMIT_S
        raise TimedOut(run.case.limit_s)

    account, measured, _ = carried_out(tmp_path, measure, pairs=1, budget_s=20.0)
    assert (len(measured), account.left_out, account.late, account.is_good()) == (6, 6, 0, False)


def test_what_was_measured_of_a_pair_is_kept_when_the_budget_ends_within_it(tmp_path: Path) -> None:
    def measure(run: Run) -> Figures:
        if run.variant == OTHER:
            raise TimedOut(run.case.limit_s)
        return {"elapsed_s": 1.0}

    account, _, kept = carried_out(tmp_path, measure, pairs=1, budget_s=20.0)
    assert (account.measured, account.left_out) == (3, 3)
    assert [(run["case"], run["variant"]) for run in kept] == [(case.name, "stock") for case in CASES]


def test_a_command_that_is_not_there_is_a_reason_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "pip").touch(0o755)
    cases = [case._replace(command=command) for case, command in zip(CASES, ("", "pip", "hg"), strict=True)]
    possible, reasons = possible_cases(cases, str(tmp_path / "python"))
    assert possible == cases[:2]
    assert reasons == {cases[2].name: "hg is not installed in the environment of the measured interpreter"}


@pytest.mark.parametrize("failure", [RunFailed("exit status 1"), TimedOut(5.0)], ids=["failed", "another limit"])
def test_a_run_that_fails_for_another_reason_is_no_good(tmp_path: Path, failure: RunFailed) -> None:
    def measure(run: Run) -> Figures:
        if run.case.size == 4 and run.variant == OTHER:
            raise failure
        return {"elapsed_s": 1.0}

    account, measured, kept = carried_out(tmp_path, measure)
    assert (len(measured), len(account.failures), account.is_good()) == (12, 2, False)
    assert [run["failed"] for run in kept if "failed" in run] == [str(failure)] * 2


def test_nothing_measured_is_no_good() -> None:
    assert not Account().is_good()
