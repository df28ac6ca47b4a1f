"""Renders the measured cases: first those in which unsnarl loses or does not help. Pure: data in, Markdown out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.cases.case import Case, Figure
from bench.markdown import table
from unsnarl.statistics import Ratio, ratio_of

STOCK, RUN, PATCH = "stock", "unsnarl run", "unsnarl run --patch"
AGAIN = "stock again"
INTRODUCTION = """# Cases that people have reported

Each program in `bench/cases/programs` was written anew from the description. A ratio is unsnarl's figure divided by
stock's, the median over {pairs} or more pairs with its interval in brackets; one whose interval contains 1 is noise.
The second run of stock beside the first says how far apart two runs of the same program are here.
Rendered from `bench/results/cases-{python}.json`:

    python -m bench.cases --out bench/results/cases-{python}.json --report docs/results/cases.md

{machine}
"""
STARTS = [
    "case", "figure", STOCK, RUN, "stock beside stock", "ratio", "ratio with --patch", "unsnarl run is", "--patch is"
]  # fmt: skip
INSIDE_INTRODUCTION = """## Two ways inside one program

These programs do the same work in two ways, one of which is unsnarl's; the start of the program does not matter. Each
row has the figure of unsnarl's way next to that of the other one, both of stock Python, and the ratio of the two.
"""
INSIDE = [
    "case",
    "unsnarl's way",
    "the other way",
    "unsnarl's",
    "other",
    "ratio",
    "ratio with --patch",
    "unsnarl's way is",
]
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
    compared = [(case, figure, document["runs"].get(case.name, [])) for case in cases for figure in case.figures]
    starts = [row for case, figure, runs in compared if not figure.against and (row := _row(case, figure, runs))]
    inside = [row for case, figure, runs in compared if figure.against and (row := _row_inside(case, figure, runs))]
    reported = "\n".join(f"- **{case.title}** (`{case.name}`): {case.reported}" for case in cases)
    return (
        f"{head}\n{table(STARTS, sorted(starts, key=_losses_first))}\n"
        f"{INSIDE_INTRODUCTION}\n{table(INSIDE, sorted(inside, key=_losses_first))}\n"
        f"## Where they were reported\n\n{reported}\n"
    )


def described(machine: dict[str, Any]) -> str:
    """Return the machine in a sentence."""
    return (
        f"Measured on {machine['processors']} processors with a load of {machine['load']:.1f} from other programs at "
        "the start: absolute figures are those of a busy machine."
    )


def _losses_first(row: Sequence[str]) -> list[int]:
    """Return the order of a row by its verdicts, which are its last cells."""
    return [(WORSE, SAME, BETTER).index(cell) for cell in row[-2:] if cell in {WORSE, SAME, BETTER}]


def _row(case: Case, figure: Figure, runs: list[dict[str, Any]]) -> list[str]:
    pairs = [run for run in runs if all(figure.name in run[way] for way in (STOCK, RUN, PATCH))]
    if not pairs:
        return []
    values = {way: [float(run[way][figure.name]) for run in pairs] for way in (STOCK, RUN, PATCH)}
    ratio, patched = (_ratio(values[STOCK], values[way]) for way in (RUN, PATCH))
    return [
        f"`{case.name}`",
        _named(figure),
        *(_middle(values[way]) for way in (STOCK, RUN)),
        _again(figure, pairs, values[STOCK]),
        _shown(ratio),
        _shown(patched),
        judged(ratio, figure.less),
        judged(patched, figure.less),
    ]


def _row_inside(case: Case, figure: Figure, runs: list[dict[str, Any]]) -> list[str]:
    """Return the row of a figure that stands against another one of the same program."""
    names = (figure.against, figure.name)
    pairs = [run for run in runs if all(name in run[way] for way in (STOCK, PATCH) for name in names)]
    if not pairs:
        return []
    other, own = ([float(run[STOCK][name]) for run in pairs] for name in names)
    patched = _ratio(*([float(run[PATCH][name]) for run in pairs] for name in names))
    ratio = _ratio(other, own)
    return [
        f"`{case.name}`",
        _named(figure),
        figure.against,
        _middle(own),
        _middle(other),
        _shown(ratio),
        _shown(patched),
        judged(ratio, figure.less),
    ]


def _named(figure: Figure) -> str:
    return f"{figure.name} ({figure.unit}, {'less' if figure.less else 'more'} is better)"


def _middle(values: list[float]) -> str:
    return f"{sorted(values)[len(values) // 2]:,.1f}"


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
