"""Summarises stored runs: medians, spreads, ratios within pairs, exponents.

Pure: the content of a results file in, numbers out. ``unsnarl.statistics`` forms ratios within pairs,
summarises them, and decides whether a difference is within the noise.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from unsnarl.statistics import Power, Ratio, power, ratio_of


class Median(NamedTuple):
    """A figure over several runs."""

    value: float
    low: float
    high: float
    runs: int


class Late(NamedTuple):
    """Runs that did not end within their time limit, or were skipped because they would not have."""

    limit_s: float
    runs: int
    """The runs that were carried out."""


class Outcome:
    """The stored results of one experiment with one interpreter."""

    def __init__(self, content: dict[str, Any]) -> None:
        """Take the content of a file (``store.read``)."""
        self.content = content
        self.experiment: dict[str, Any] = content["experiment"]
        self.machine: dict[str, Any] = content["machine"]
        self.absent: dict[str, str] = content["absent"]
        self.figures: list[dict[str, Any]] = self.experiment["figures"]
        self._runs: list[dict[str, Any]] = content["runs"]

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.experiment["name"])

    def variants(self) -> list[dict[str, Any]]:
        """Return the variants that have runs, in the experiment's order."""
        seen = {run["variant"] for run in self._runs}
        return [variant for variant in self.experiment["variants"] if variant["name"] in seen]

    def base(self) -> str:
        """Return the name of the variant that all others are compared with."""
        return str(self.experiment["variants"][0]["name"])

    def cases(self, *, traced: bool) -> list[dict[str, Any]]:
        """Return the cases that have runs: those with counted system calls, or the timed ones."""
        seen = {run["case"] for run in self._runs}
        return [case for case in self.experiment["cases"] if case["name"] in seen and bool(case["is_traced"]) == traced]

    def values(self, case: str, variant: str, figure: str) -> dict[int, float]:
        """Return a figure by pair, without the runs that failed or lack it."""
        mine = (run for run in self._runs if run["case"] == case and run["variant"] == variant)
        found = ((run["pair"], run.get("figures", {}).get(figure)) for run in mine)
        return {pair: value for pair, value in found if isinstance(value, (int, float))}

    def median(self, case: str, variant: str, figure: str) -> Median | None:
        """Return the median and the range of a figure; None if it was not measured."""
        values = list(self.values(case, variant, figure).values())
        return Median(statistics.median(values), min(values), max(values), len(values)) if values else None

    def late(self, case: str, variant: str) -> Late | None:
        """Return the time limit and the number of the runs that exceeded it; None if there is none."""
        mine = (run for run in self._runs if run["case"] == case and run["variant"] == variant)
        late = [run for run in mine if "late_s" in run]
        if not late:
            return None
        return Late(max(run["late_s"] for run in late), sum(not run.get("is_spared", False) for run in late))

    def ratio(self, case: str, variant: str, figure: str) -> Ratio | None:
        """Return a variant over the first one within each pair.

        None if no pair has both, if a run exceeded its time limit (the other runs alone would mislead),
        or if the first variant's figure is 0 in a pair.
        """
        if self.late(case, variant) or self.late(case, self.base()):
            return None
        over, under = self.values(case, variant, figure), self.values(case, self.base(), figure)
        both = [(under[pair], over[pair]) for pair in sorted(over.keys() & under.keys())]
        return ratio_of(both) if all(first for first, _ in both) else None

    def calls(self, case: str) -> list[str]:
        """Return the kinds of system calls of a case, the most frequent first."""
        totals: dict[str, float] = {}
        for run in self._runs:
            if run["case"] != case:
                continue
            for figure, count in run.get("figures", {}).items():
                kind = figure.removeprefix("calls.")
                if kind not in (figure, "all") and isinstance(count, (int, float)):
                    totals[kind] = max(totals.get(kind, 0), count)
        return sorted(totals, key=lambda kind: (-totals[kind], kind))

    def series(self) -> list[str]:
        """Return the names of the series, in order."""
        return list(dict.fromkeys(case["series"] for case in self.cases(traced=False) if case["series"]))

    def curve(self, series: str, variant: str, figure: str) -> dict[int, Median]:
        """Return a figure by size along a series, without sizes at which a run exceeded its time limit."""
        points: dict[int, Median] = {}
        for case in self.cases(traced=False):
            median = self.median(case["name"], variant, figure) if case["series"] == series else None
            if median is not None and self.late(case["name"], variant) is None:
                points[case["size"]] = median
        return dict(sorted(points.items()))

    def growth(self, series: str, variant: str, figure: str) -> Power | None:
        """Return the fitted power of a figure's growth along a series; None for too few sizes."""
        return power({size: median.value for size, median in self.curve(series, variant, figure).items()})

    def pairs(self) -> tuple[int, int]:
        """Return the smallest and the largest number of pairs over the cases."""
        kept: dict[str, set[int]] = {}
        for run in self._runs:
            kept.setdefault(run["case"], set()).add(run["pair"])
        counts = [len(pairs) for pairs in kept.values()]
        return (min(counts), max(counts)) if counts else (0, 0)

    def failures(self) -> list[str]:
        """Return one line for each run that has no figures."""
        return [f"{run['case']}, {run['variant']}: {run['failed']}" for run in self._runs if "failed" in run]
