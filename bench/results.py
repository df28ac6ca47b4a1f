"""Reader of kept results: figures of a case by variant, and ratios within its pairs."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from unsnarl.demo.variant import STOCK, UNSNARL
from unsnarl.statistics import Ratio, ratio_of


class Result:
    """One case's file."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Take the content of the file."""
        self.name: str = data["case"]["name"]
        self.machine: dict[str, Any] = data["machine"]
        self._runs: list[dict[str, Any]] = data["runs"]

    def pairs(self) -> int:
        """Return the number of measured pairs."""
        return len({run["pair"] for run in self._runs})

    def values(self, variant: str, figure: str) -> dict[int, float]:
        """Return a figure of a variant by pair, without runs that failed or lack the figure."""
        mine = (run for run in self._runs if run["variant"] == variant and "figures" in run)
        return {run["pair"]: run["figures"][figure] for run in mine if run["figures"].get(figure) is not None}

    def median(self, variant: str, figure: str) -> float | None:
        """Return the median of a figure over the pairs; None when it was not measured."""
        values = self.values(variant, figure)
        return statistics.median(values.values()) if values else None

    def ratio(self, figure: str, variant: str = UNSNARL, base: str = STOCK) -> Ratio | None:
        """Return the ratio of ``variant`` to ``base``, formed within each pair, summarised over the pairs."""
        over, under = self.values(variant, figure), self.values(base, figure)
        return ratio_of([(under[pair], over[pair]) for pair in sorted(over.keys() & under.keys())])

    def slowest(self, variant: str, figure: str) -> float | None:
        """Return the greatest value of a figure over the pairs; None when it was not measured."""
        return max(self.values(variant, figure).values(), default=None)

    def gil(self, *path: str) -> float | None:
        """Return the median over the pairs of one entry of the scheduler's statistics."""
        found: list[float] = []
        for run in self._runs:
            entry: Any = run.get("gil")
            for name in path:
                entry = entry and entry.get(name)
            if entry is not None:
                found.append(entry)
        return statistics.median(found) if found else None

    def failures(self, variant: str) -> list[str]:
        """Return the reasons why runs of a variant have no figures."""
        return [run["failed"] for run in self._runs if run["variant"] == variant and "failed" in run]


Results = dict[str, Result]
"""Results by the name of their case."""


def load(folder: Path) -> Results:
    """Return every result kept in ``folder``."""
    results = (Result(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json")))
    return {result.name: result for result in results}
