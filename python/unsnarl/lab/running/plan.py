"""Which runs there are, and in which order: the variants of a case take turns within each pair.

The first of them changes from pair to pair, so that drift of the machine meets all
alike. Pure: experiments, and what is kept of them, in; a list of runs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from unsnarl.lab.experiment import Case, Experiment
from unsnarl.lab.running.process import Run

Item = TypeVar("Item")


class Planned(NamedTuple):
    """A run and the pair it belongs to."""

    run: Run
    pair: int


def rotated(variants: Sequence[Item], by: int) -> tuple[Item, ...]:
    """Return ``variants`` beginning at another one each time, so that none is always first."""
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
    """Yield the runs of an experiment, variants that are absent left out, kept pairs continued."""
    for case in cases:
        first = pairs_kept.get(case.name, 0)
        variants = [variant for variant in experiment.variants_of(case) if variant.name not in absent]
        for pair in range(first, first + pairs):
            for variant in rotated(variants, pair):
                yield Planned(Run(experiment, case, variant, python), pair)
