"""The demonstration's picture: three panels of bars as one SVG, for light and for dark pages.

One row per server and number of connections, one bar per variant. Rates and work have linear scales
from zero; latencies have a logarithmic scale, on which a bar reaches from the median to the 99th
percentile. The embedded style sheet follows the reader's colour scheme, and rates and work are also
written as text. Pure: comparisons in, text out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from unsnarl.demo import figures
from unsnarl.demo.comparison import Comparison
from unsnarl.demo.table import NAMES

WIDTH = 880
MARGIN = 28
TOP = 112
ROW = 52
BAR, GAP = 15, 4
LABEL_X, LABEL_WIDTH = MARGIN, 118
PANEL_X = (LABEL_X + LABEL_WIDTH, 446, 684)
PANEL_WIDTH = (290, 224, 176)
TEXT_ROOM = (104, 0, 104)
"""Pixels to the right of a full bar, for its text."""
DIGIT_WIDTH = 7.2
"""The largest width of a digit of the small bold text, in pixels."""

LABEL_ROOM = 46
"""Pixels between two decades below which only every third is named."""

STYLE = """
  text { font: 12.5px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .quiet { fill: #59636e }
  .small { font-size: 11px }
  .strong { font-weight: 600 }
  .card { fill: #ffffff; stroke: #d1d9e0 }
  .rule { stroke: #d1d9e0; stroke-width: 1 }
  .stock { fill: #9aa4af }
  .unsnarl { fill: #1a7f64 }
  .factor { fill: #1a7f64; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .quiet { fill: #9198a1 }
    .card { fill: #0d1117; stroke: #3d444d }
    .rule { stroke: #3d444d }
    .stock { fill: #656c76 }
    .unsnarl, .factor { fill: #3fb68b }
  }
"""


def text(x: float, y: float, words: str, classes: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{escape(words)}</text>'


def bar(x: float, y: float, width: float, classes: str) -> str:
    """Return a bar, at least 1.5 pixels long so that it is visible."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{BAR}" rx="2" class="{classes}"/>'


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a thin line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="rule"/>'


def values_of(comparison: Comparison, name: str) -> list[tuple[str, float | None]]:
    """Return the medians of one figure, stock first."""
    figure = comparison.figures[name]
    return [("stock", figure.stock), ("unsnarl", figure.unsnarl)]


def bar_y(row: int, line: int) -> float:
    """Return the top of a bar: ``line`` 0 is stock's, 1 unsnarl's."""
    return TOP + row * ROW + line * (BAR + GAP)


def linear_panel(
    panel: int, comparisons: Sequence[Comparison], name: str, write: Callable[[float | None], str]
) -> list[str]:
    """Return the bars of a figure on a scale from zero, with the value next to each."""
    x, room = PANEL_X[panel], PANEL_WIDTH[panel] - TEXT_ROOM[panel]
    every = [value for c in comparisons for _, value in values_of(c, name) if value is not None]
    scale = room / max(every, default=1.0) if any(every) else 0.0
    parts: list[str] = []
    for row, comparison in enumerate(comparisons):
        ratio = comparison.figures[name].ratio
        for line, (variant, value) in enumerate(values_of(comparison, name)):
            y, width = bar_y(row, line), (value or 0.0) * scale
            parts.append(bar(x, y, width, variant))
            end = x + width + 6
            if variant == "stock":
                parts.append(text(end, y + BAR - 3.5, write(value), "small quiet"))
                continue
            parts.append(text(end, y + BAR - 3.5, write(value), "small strong"))
            if ratio is not None:
                at = end + DIGIT_WIDTH * len(write(value)) + 6
                classes = "small factor" if ratio.median >= 1 else "small quiet"
                parts.append(text(at, y + BAR - 3.5, figures.factor(ratio), classes))
    return parts


def latency_axis(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """Return the logarithms of the microseconds at both ends of a scale for all latencies."""
    pairs = [values_of(c, name) for c in comparisons for name in ("p50_us", "p99_us")]
    every = [math.log10(value) for pair in pairs for _, value in pair if value] or [0.0, 1.0]
    return min(every) - 0.1, max(*every, min(every) + 1) + 0.1


def latency_panel(comparisons: Sequence[Comparison]) -> list[str]:
    """Return bars from median to 99th percentile on a logarithmic scale, with its decades."""
    first, last = latency_axis(comparisons)
    x, width = PANEL_X[1], PANEL_WIDTH[1] - 24
    bottom = TOP + len(comparisons) * ROW - 8

    def x_of(value_us: float) -> float:
        return x + (math.log10(value_us) - first) / (last - first) * width

    parts: list[str] = []
    for decade in range(math.ceil(first), math.floor(last) + 1):
        at = x_of(10.0**decade)
        parts.append(rule(at, TOP - 8, at, bottom))
        if width / (last - first) >= LABEL_ROOM or decade % 3 == 0:
            parts.append(text(at, bottom + 14, decade_label(decade), "small quiet", "middle"))
    for row, comparison in enumerate(comparisons):
        for line in (0, 1):
            variant, p50 = values_of(comparison, "p50_us")[line]
            _, p99 = values_of(comparison, "p99_us")[line]
            if p50 and p99:
                parts.append(bar(x_of(p50), bar_y(row, line), x_of(p99) - x_of(p50), variant))
    return parts


def decade_label(decade: int) -> str:
    """Return the name of 10**decade microseconds."""
    unit, power = ("µs", decade) if decade < 3 else ("ms", decade - 3) if decade < 6 else ("s", decade - 6)
    return f"{10**power} {unit}"


def labels(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the labels of the rows."""
    parts: list[str] = []
    before = ""
    for row, comparison in enumerate(comparisons):
        y = bar_y(row, 0)
        if comparison.kind != before and row:
            parts.append(rule(MARGIN, y - 10, WIDTH - MARGIN, y - 10))
        before = comparison.kind
        plural = "s" if comparison.connections != 1 else ""
        parts.append(text(LABEL_X, y + 12, NAMES[comparison.kind], "strong"))
        parts.append(text(LABEL_X, y + 30, f"{comparison.connections} connection{plural}", "quiet small"))
    return parts


def heading(title: str, where: str, pairs: int) -> list[str]:
    """Return title, legend and the panels' headings."""
    legend_x = WIDTH - MARGIN - 150
    return [
        text(MARGIN, 38, title, "title"),
        text(MARGIN, 58, f"{where}; medians of {pairs} alternating pairs", "quiet small"),
        bar(legend_x, 26, 15, "stock"),
        text(legend_x + 21, 38, "stock"),
        bar(legend_x + 72, 26, 15, "unsnarl"),
        text(legend_x + 93, 38, "unsnarl"),
        text(PANEL_X[0], TOP - 18, "requests/s", "strong"),
        text(PANEL_X[1], TOP - 18, "latency, p50 to p99 (log)", "strong"),
        text(PANEL_X[2], TOP - 18, "CPU work/s", "strong"),
    ]


def draw(comparisons: Sequence[Comparison], title: str, where: str, pairs: int) -> str:
    """Return the picture of ``comparisons`` as an SVG document."""
    height = TOP + len(comparisons) * ROW + 28
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}: requests, latency and CPU work, stock and unsnarl</title>",
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" class="card"/>',
        *heading(title, where, pairs),
        *labels(comparisons),
        *linear_panel(0, comparisons, "requests_per_s", figures.count),
        *latency_panel(comparisons),
        *linear_panel(2, comparisons, "work_per_s", figures.count),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
