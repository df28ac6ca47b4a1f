"""Renders what was measured: first where an alternative is better than unsnarl. Pure: data in, Markdown out.

A ratio is the alternative's figure divided by unsnarl's, formed within a round. It is better or worse if its interval
does not contain 1, and there are enough rounds for one.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.alternatives import ways
from bench.markdown import table
from unsnarl.statistics import FEWEST_PAIRS, Ratio, ratio_of

ANSWERS, P99, WORK = "requests_per_s", "p99_us", "work_per_s"
INTRODUCTION = """# unsnarl and its alternatives, measured in one run

A client process asks an echo, one request after the other, while 0, 1, 2 or 4 threads compute; in the other ways tasks,
greenlets, processes or sub-interpreters compute, as each alternative has them. Work is counted in units of 500 steps of
arithmetic. All ways of a round ran one after the other, in a random order. A ratio is an alternative's figure divided
by that of `unsnarl run` in the same round, the median over {pairs} rounds with its interval in brackets; **bold**
ratios say that the alternative is better. Tasks and greenlets give way after each unit of work, by a line that was
written into them for that: a program whose tasks lack it does not answer while they compute. Rendered from
`docs/results/data/alternatives.json`:

    python -m bench.alternatives --render docs/results/data/alternatives.json > docs/results/alternatives.md

Measured on {cpu}, {cores} processors, Linux {kernel}, {taken}, commit {commit}. The load of other programs at the start
was {load:.1f}: absolute figures are those of a busy machine if it is above 1. The interpreters:

{interpreters}
"""
CALLED = {ways.HERE: "all ways but the following", ways.FREE_THREADED: "free-threaded", ways.PYPY: "PyPy"}
FIGURES = {ANSWERS: "more answers", WORK: "more work"}


@dataclass(slots=True)
class Compared:
    """A way beside unsnarl: its ratios, by figure and number of hogs."""

    name: str
    ratios: dict[tuple[str, int], Ratio] = field(default_factory=dict[tuple[str, int], Ratio])

    def better(self, figure: str) -> list[int]:
        """Return the numbers of hogs beside which this way has more."""
        return [hogs for (one, hogs), ratio in self.ratios.items() if one == figure and is_better(ratio)]


def is_better(ratio: Ratio) -> bool:
    """Return whether a ratio says that the alternative has more; fewer rounds than can be judged say nothing."""
    return ratio.pairs >= FEWEST_PAIRS and ratio.low > 1


def page(document: dict[str, Any]) -> str:
    """Return the page."""
    machine = document["machine"]
    head = INTRODUCTION.format(
        pairs=document["pairs"], cpu=machine["cpu"], cores=machine["cores"], kernel=machine["kernel"],
        taken=machine["taken"][:10], commit=machine["commit"], load=document["load"][0],
        interpreters="\n".join(_interpreter(*one) for one in document["interpreters"].items()),
    )  # fmt: skip
    runs = document["runs"]
    names = [way.name for way in ways.WAYS if any(run["way"] == way.name for run in runs)]
    hogs = sorted({run["hogs"] for run in runs})
    others = [compared(name, runs, hogs) for name in names if name != ways.UNSNARL]
    parts = [
        head, "## Where an alternative is better", _list(others), _absent(document["interpreters"]),
        "## Beside unsnarl", _ratios(others, hogs),
        *(part for number in hogs for part in (f"## {_beside(number)}", _figures(names, runs, number))),
    ]  # fmt: skip
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def compared(name: str, runs: Sequence[dict[str, Any]], hogs: Iterable[int]) -> Compared:
    """Return a way's ratios to unsnarl."""
    made = Compared(name)
    for number in hogs:
        for figure in (ANSWERS, WORK):
            mine, base = _values(runs, name, number, figure), _values(runs, ways.UNSNARL, number, figure)
            pairs = [(base[pair], mine[pair]) for pair in sorted(base.keys() & mine.keys())]
            if pairs and all(value > 0 for value, _ in pairs) and (ratio := ratio_of(pairs)):
                made.ratios[figure, number] = ratio
    return made


def _values(runs: Sequence[dict[str, Any]], name: str, hogs: int, figure: str) -> dict[int, float]:
    mine = (run for run in runs if run["way"] == name and run["hogs"] == hogs)
    return {run["pair"]: run["figures"][figure] for run in mine}


def _interpreter(name: str, found: dict[str, Any]) -> str:
    gil = "with a GIL" if found["gil"] else "without a GIL"
    built = "profile-guided" if found["optimized"] else "not profile-guided"
    return f"- {CALLED[name]}: {found['name']} {found['version']}, {gil}, its build {built}"


def _absent(interpreters: dict[str, Any]) -> str:
    missing = [way.name for way in ways.WAYS if way.interpreter not in interpreters]
    return f"Not measured, since there was no such interpreter: {', '.join(missing)}." if missing else ""


def _list(others: Sequence[Compared]) -> str:
    lines: list[str] = []
    for one in others:
        found = [f"{words} {_numbers(numbers)}" for figure, words in FIGURES.items() if (numbers := one.better(figure))]
        if found:
            lines.append(f"- {one.name}: {'; '.join(found)}")
    return "\n".join(lines) or "Nowhere in this run."


def _numbers(hogs: Sequence[int]) -> str:
    """Say with how many computing threads, or with none."""
    *first, last = ["none" if number == 0 else f"{number}" for number in hogs]
    return f"with {', '.join(first) + ' and ' if first else ''}{last} computing"


def _ratios(others: Sequence[Compared], hogs: Sequence[int]) -> str:
    columns = [(ANSWERS, number) for number in hogs] + [(WORK, number) for number in hogs if number]
    head = [
        "way",
        *(f"{'answers' if figure == ANSWERS else 'work'}, {number or 'none'} computing" for figure, number in columns),
    ]
    ordered = sorted(others, key=lambda one: -sum(len(one.better(figure)) for figure in FIGURES))
    return table(head, [[one.name, *(_shown(one.ratios.get(column)) for column in columns)] for one in ordered])


def _shown(ratio: Ratio | None) -> str:
    if ratio is None:
        return "–"
    text = f"{ratio.median:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"
    return f"**{text}**" if is_better(ratio) else text


def _beside(hogs: int) -> str:
    return "Nothing computes" if hogs == 0 else f"{hogs} of them compute" if hogs > 1 else "One computes"


def _figures(names: Sequence[str], runs: Sequence[dict[str, Any]], hogs: int) -> str:
    head = ["way", "answers a second", "99th percentile, ms", *(["units of work a second"] if hogs else [])]
    rows = [
        [
            name,
            f"{_median(runs, name, hogs, ANSWERS):,.0f}",
            f"{_median(runs, name, hogs, P99) / 1e3:,.2f}",
            *([f"{_median(runs, name, hogs, WORK):,.0f}"] if hogs else []),
        ]
        for name in names
    ]
    return table(head, rows)


def _median(runs: Sequence[dict[str, Any]], name: str, hogs: int, figure: str) -> float:
    return statistics.median(_values(runs, name, hogs, figure).values())
