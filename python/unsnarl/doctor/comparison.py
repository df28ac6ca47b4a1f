"""Summarises the runs of each way: medians, spread, and the ratio to stock within pairs.

A way is faster or slower only if the sequential test of ``unsnarl.statistics`` has decided so, and the median ratio
differs from 1 by more than ``LEAST``. Without a decision the verdict is TOO_FEW. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from unsnarl.doctor.trial import Trial
from unsnarl.statistics import ERROR, HIGHER, LOWER, decide, quartiles, ratio_of

LEAST = 0.05
"""The least difference that counts, as a share of the stock time."""

WAYS_ERROR = 0.8 * ERROR
"""The error of all verdicts on ways together; the rest of ``ERROR`` is for the effects on threads."""

FASTER, SLOWER, SAME, FAILED = "faster", "slower", "same", "failed"
TOO_FEW = "too few to judge"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The runs of one way.

    Attributes:
        name: the way's name.
        what: the command that a user would type.
        runs: the number of runs.
        wall_s: median.
        low_s, high_s: the ends of the middle half.
        cpu_s: median of processor time.
        switches: median of context switches.
        ratio: the median over the pairs of stock's time over this way's: above 1 is faster.
        verdict: FASTER, SLOWER, SAME, TOO_FEW, or FAILED if the command ended differently than stock.
        failure: how a FAILED command ended; else empty.
    """

    name: str
    what: str
    runs: int
    wall_s: float
    low_s: float
    high_s: float
    cpu_s: float
    switches: float
    ratio: float
    verdict: str
    failure: str = ""


def outcome(
    name: str, what: str, trials: Sequence[Trial | None], stock: Sequence[Trial], questions: int = 1
) -> Outcome:
    """Summarise the runs of a way, compared with those of stock.

    Args:
        name: the way's name.
        what: the command that a user would type.
        trials: the runs by round, None where a round has none; at least one run.
        stock: the stock runs by round.
        questions: the number of ways that are compared with stock, among which the error is divided.
    """
    made = [trial for trial in trials if trial is not None]
    pairs = pairs_of(trials, stock)
    low, high = quartiles([trial.wall_s for trial in made])
    failure = next((ending(trial) for trial in made if ends_differently(trial, stock[0])), "")
    ratio = ratio_of([(way_s, stock_s) for stock_s, way_s in pairs])
    return Outcome(
        name=name,
        what=what,
        runs=len(made),
        wall_s=statistics.median(trial.wall_s for trial in made),
        low_s=low,
        high_s=high,
        cpu_s=statistics.median(trial.cpu_s for trial in made),
        switches=statistics.median(trial.switches for trial in made),
        ratio=ratio.median if ratio else 1.0,
        verdict=FAILED if failure else verdict(pairs, questions),
        failure=failure,
    )


def pairs_of(trials: Sequence[Trial | None], stock: Sequence[Trial]) -> list[tuple[float, float]]:
    """Return the wall times of stock and of a way in each round in which both ran."""
    both = zip(stock, trials, strict=False)  # a way that is decided takes part in no further round
    return [(stock_trial.wall_s, trial.wall_s) for stock_trial, trial in both if trial is not None]


def ends_differently(trial: Trial, stock: Trial) -> bool:
    """Tell whether a run ended with another status than the first stock run, or at its time limit."""
    return trial.timed_out or trial.status != stock.status


def ending(trial: Trial) -> str:
    """Return in words how a run ended."""
    return f"not within {trial.wall_s:.0f} s" if trial.timed_out else f"with status {trial.status}"


def verdict(pairs: Sequence[tuple[float, float]], questions: int = 1) -> str:
    """Tell whether a way is faster or slower than stock, from their wall times by round."""
    decision = decide(pairs, LEAST, WAYS_ERROR / questions)
    return TOO_FEW if decision is None else {LOWER: FASTER, HIGHER: SLOWER}.get(decision, SAME)
