"""Plans the runs of an experiment: the variants of a case alternate within each pair.

The first variant changes from pair to pair, so that drift of the machine affects all alike. Pure:
experiments and the number of stored pairs in, runs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from unsnarl.lab.experiment import Case, Experiment
from unsnarl.lab.running.process import Run

Item = TypeVar("Item")


class Planned(NamedTuple):
    """A run and the number of its pair."""

    run: Run
    pair: int


def rotated(variants: Sequence[Item], by: int) -> tuple[Item, ...]:
    """Return ``variants`` rotated by some places, so that each is first in turn."""
    if not variants:
        return ()
    by %= len(variants)
    return (*variants[by:], *variants[:by])


def planned(
    experiment: Experiment,
    cases: Iterable[Case],
    python: str,
    absent: Mapping[str, str],
    pairs: int,
    pairs_kept: Mapping[str, int],
) -> Iterator[Planned]:
    """Yield the runs of an experiment without absent variants, continuing after the stored pairs."""
    for case in cases:
        first = pairs_kept.get(case.name, 0)
        variants = [variant for variant in experiment.variants_of(case) if variant.name not in absent]
        for pair in range(first, first + pairs):
            for variant in rotated(variants, pair):
                yield Planned(Run(experiment, case, variant, python), pair)
