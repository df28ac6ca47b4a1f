"""Renders the measured cases: first those in which unsnarl loses or does not help. Pure: data in, Markdown out."""

from __future__ import annotations

from typing import Any

from bench.cases.case import Case, Figure
from bench.markdown import table
from unsnarl.statistics import Ratio, ratio_of

STOCK, RUN, PATCH = "stock", "unsnarl run", "unsnarl run --patch"
AGAIN = "stock again"
INTRODUCTION = """# Cases that people have reported

Each program in `bench/cases/programs` was written anew from the description. A ratio is unsnarl's figure divided by
stock's, the median over {pairs} pairs with its interval in brackets; a ratio whose interval contains 1 is noise.
The second run of stock beside the first says how far apart two runs of the same program are here.
Rendered from `bench/results/cases-{python}.json`:

    python -m bench.cases --out bench/results/cases-{python}.json --report docs/results/cases.md

{machine}
"""
SHOWN_DIGITS = 2
"""A difference that the page does not show is none."""
WORSE, SAME, BETTER = "worse", "no difference", "better"


def page(document: dict[str, Any], cases: list[Case]) -> str:
    """Return the page of one run of the cases."""
    machine = document["machine"]
    head = INTRODUCTION.format(pairs=document["pairs"], python=document["python"], machine=described(machine))
    head += "".join(
        f"`{name}` was measured later, with a load of {load:.1f}.\n" for name, load in document.get("later", {}).items()
    )
    rows = [row for case in cases for row in _rows(case, document["runs"].get(case.name, []))]
    ordered = sorted(rows, key=lambda row: (WORSE, SAME, BETTER).index(row[-1]))
    names = ["case", "figure", STOCK, RUN, "stock beside stock", "ratio", "ratio with --patch", "unsnarl run is"]
    reported = "\n".join(f"- **{case.title}** (`{case.name}`): {case.reported}" for case in cases)
    return f"{head}\n{table(names, ordered)}\n## Where they were reported\n\n{reported}\n"


def described(machine: dict[str, Any]) -> str:
    """Return the machine in a sentence."""
    return (
        f"Measured on {machine['processors']} processors with a load of {machine['load']:.1f} from other programs at "
        "the start: absolute figures are those of a busy machine."
    )


def _rows(case: Case, runs: list[dict[str, Any]]) -> list[list[str]]:
    return [row for figure in case.figures if (row := _row(case, figure, runs))]


def _row(case: Case, figure: Figure, runs: list[dict[str, Any]]) -> list[str]:
    pairs = [run for run in runs if all(figure.name in run[way] for way in (STOCK, RUN, PATCH))]
    if not pairs:
        return []
    values = {way: [float(run[way][figure.name]) for run in pairs] for way in (STOCK, RUN, PATCH)}
    ratio, patched = (_ratio(values[STOCK], values[way]) for way in (RUN, PATCH))
    return [
        f"`{case.name}`",
        f"{figure.name} ({figure.unit}, {'less' if figure.less else 'more'} is better)",
        *(f"{sorted(values[way])[len(pairs) // 2]:,.1f}" for way in (STOCK, RUN)),
        _again(figure, pairs, values[STOCK]),
        _shown(ratio),
        _shown(patched),
        judged(ratio, figure.less),
    ]


def _again(figure: Figure, pairs: list[dict[str, Any]], stock: list[float]) -> str:
    """Return the ratio of stock's second run, or a dash for a run of before there was one."""
    if any(figure.name not in run.get(AGAIN, {}) for run in pairs):
        return _shown(None)
    return _shown(_ratio(stock, [float(run[AGAIN][figure.name]) for run in pairs]))


def _ratio(stock: list[float], other: list[float]) -> Ratio | None:
    pairs = list(zip(stock, other, strict=True))
    return ratio_of(pairs) if all(one > 0 for one, _ in pairs) else None


def _shown(ratio: Ratio | None) -> str:
    return "–" if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"


def judged(ratio: Ratio | None, less: bool) -> str:
    """Return whether a ratio is better, worse or noise."""
    if ratio is None or round(ratio.low, SHOWN_DIGITS) <= 1 <= round(ratio.high, SHOWN_DIGITS):
        return SAME
    return BETTER if (ratio.high < 1) == less else WORSE
