"""Plots of results as SVG, by matplotlib: curves over sizes, otherwise bars.

matplotlib is an extra (``unsnarl[lab]``); without it, reports have tables only.
Invariant: the same results give the same bytes. A plot has no background, and its text and axes have the
colour of the page's text, so it is readable on light and on dark pages.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from unsnarl.lab.results.analysis import Median, Outcome

EXTRA = "unsnarl[lab]"

MARKERS = "osD^vPX*<>"
WIDTH_IN, CURVE_IN, BAR_IN = 7.2, 4.0, 0.24

INK = "#010203"
"""Stands for the colour of the page's text while matplotlib draws: it knows no such colour."""
ADAPTS = "<style>svg { color: #1f2328 } @media (prefers-color-scheme: dark) { svg { color: #e6edf3 } }</style>"
"""The colour of the page's text, also for a plot that a page only refers to."""

# Okabe and Ito's palette, which colour-blind readers can distinguish; stock is grey.
COLOURS = ("#7f7f7f", "#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", INK, "#f0e442")

SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "unsnarl",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "lines.markeredgecolor"), INK
    ),
}


class Plot(NamedTuple):
    """A plot as a file and as text."""

    file_name: str
    title: str
    svg: str


def is_available() -> bool:
    """Tell whether matplotlib can be imported."""
    return find_spec("matplotlib") is not None


def plots_of(outcome: Outcome, stem: str) -> Iterator[Plot]:
    """Yield the plots of an experiment: a curve for each series, or bars of the main figure."""
    series = [name for name in outcome.series() if _is_curve(outcome, name)]
    for index, name in enumerate(series, start=1):
        yield Plot(f"{stem}-{index}.svg", name, curve(outcome, name))
    if not series and outcome.cases(traced=False):
        yield Plot(f"{stem}.svg", outcome.figures[0]["title"], bars(outcome))


def _is_curve(outcome: Outcome, series: str) -> bool:
    main = outcome.figures[0]["name"]
    return any(len(outcome.curve(series, variant["name"], main)) > 1 for variant in outcome.variants())


def _style(outcome: Outcome, variant: str) -> int:
    """Return the index of a variant among all of the experiment's, which selects its colour in every plot."""
    names = [one["name"] for one in outcome.experiment["variants"]]
    return names.index(variant) % len(COLOURS)


def _drawn(draw: Any, height_in: float) -> str:
    """Return the SVG text of a figure with one pair of axes, which ``draw`` fills."""
    matplotlib: Any = import_module("matplotlib")
    figure_module: Any = import_module("matplotlib.figure")
    with matplotlib.rc_context(SETTINGS):
        figure = figure_module.Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor").replace("<defs>", f"{ADAPTS}\n <defs>", 1)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _label(outcome: Outcome, series: str, variant: dict[str, Any]) -> str:
    power = outcome.growth(series, variant["name"], outcome.figures[0]["name"])
    return str(variant["title"]) if power is None else f"{variant['title']}, n^{power.exponent:.2f}"


def curve(outcome: Outcome, series: str) -> str:
    """Return a plot of the main figure over the sizes of a series, on logarithmic axes, with the range as a bar."""
    main = outcome.figures[0]

    def draw(axes: Any) -> None:
        for variant in outcome.variants():
            points = outcome.curve(series, variant["name"], main["name"])
            if not points:
                continue
            style = _style(outcome, variant["name"])
            medians = list(points.values())
            axes.errorbar(
                list(points),
                [median.value for median in medians],
                yerr=_ranges(medians),
                label=_label(outcome, series, variant),
                color=COLOURS[style],
                marker=MARKERS[style],
                markersize=4,
                linewidth=1.2,
                capsize=2,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        sizes = sorted({size for v in outcome.variants() for size in outcome.curve(series, v["name"], main["name"])})
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("n")
        axes.set_ylabel(f"{main['title']}, {main['unit']}" if main["unit"] else main["title"])
        axes.legend()

    return _drawn(draw, CURVE_IN)


def _ranges(medians: list[Median]) -> list[list[float]]:
    below = [median.value - median.low for median in medians]
    above = [median.high - median.value for median in medians]
    return [below, above]


def bars(outcome: Outcome) -> str:
    """Return a plot of the main figure as bars, one group per case, with the range as a line."""
    main = outcome.figures[0]
    cases, variants = outcome.cases(traced=False), outcome.variants()
    step = len(variants) + 1

    def draw(axes: Any) -> None:
        for index, variant in enumerate(variants):
            found = [outcome.median(case["name"], variant["name"], main["name"]) for case in cases]
            there = [(row * step + index, median) for row, median in enumerate(found) if median is not None]
            medians = [median for _, median in there]
            axes.barh(
                [at for at, _ in there],
                [median.value for median in medians],
                xerr=_ranges(medians),
                height=0.85,
                color=COLOURS[_style(outcome, variant["name"])],
                error_kw={"linewidth": 0.8, "ecolor": INK},
                label=variant["title"],
            )
        axes.set_yticks([row * step + (len(variants) - 1) / 2 for row in range(len(cases))], [c["name"] for c in cases])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{main['title']}, {main['unit']}" if main["unit"] else main["title"])
        axes.figure.legend(loc="outside lower center", ncols=3)

    return _drawn(draw, 1.4 + BAR_IN * step * len(cases))
