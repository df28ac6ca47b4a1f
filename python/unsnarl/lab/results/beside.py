"""Tables of the documents' published figures next to the measured ones.

Pure: an ``Outcome`` and ``unsnarl.lab.published`` in, tables out. Invariant: what was not measured is a dash.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from unsnarl.demo.figures import NONE, digits
from unsnarl.lab.published import CURVES, NOT_REPEATED, POINTS, Column, Curve, Point
from unsnarl.lab.results.analysis import Outcome
from unsnarl.lab.results.tables import Table
from unsnarl.statistics import power


def tables_of(outcome: Outcome) -> Iterator[Table]:
    """Yield the tables that have published figures next to measured ones."""
    points = [point for point in POINTS.get(outcome.name, ()) if _has_variant(outcome, point.variant)]
    if points:
        rows = [_point_row(outcome, point) for point in points]
        yield Table("published next to measured", ("", "published", "here", "measured as"), rows)
    for series, curve in CURVES.get(outcome.name, {}).items():
        if series in outcome.series():
            yield _curve_table(outcome, series, curve)


def not_repeated(outcome: Outcome) -> list[str]:
    """Return one line for each published figure that cannot be repeated, with the reason."""
    return [f"not repeated: {what}: {why}" for what, why in NOT_REPEATED.get(outcome.name, ())]


def _has_variant(outcome: Outcome, name: str) -> bool:
    return any(variant["name"] == name for variant in outcome.experiment["variants"])


def _title(outcome: Outcome, name: str) -> str:
    titles = {str(variant["name"]): str(variant["title"]) for variant in outcome.experiment["variants"]}
    return titles.get(name, name)


def _point_row(outcome: Outcome, point: Point) -> tuple[str, ...]:
    found = _measured(outcome, point)
    how = f"{point.case}, {_title(outcome, point.variant)}"
    if point.over_variant or point.over_case:
        how += f", over {point.over_case or _title(outcome, point.over_variant)}"
    return point.what, _value(point, point.value), NONE if found is None else _value(point, found), how


def _value(point: Point, value: float) -> str:
    text = f"{value:,.0f}" if point.figure.startswith("calls.") else digits(value)
    return f"{text} {point.unit}".rstrip()


def _measured(outcome: Outcome, point: Point) -> float | None:
    median = outcome.median(point.case, point.variant, point.figure)
    if median is None:
        is_counted = point.figure.startswith("calls.") and outcome.median(point.case, point.variant, "calls.all")
        return 0.0 if is_counted else None
    if point.over_variant:
        ratio = outcome.ratio(point.case, point.variant, point.figure)
        return None if ratio is None or outcome.base() != point.over_variant else ratio.median
    if point.over_case:
        over = outcome.median(point.over_case, point.variant, point.figure)
        return median.value / over.value if over and over.value else None
    return median.value


def _curve_table(outcome: Outcome, series: str, curve: Curve) -> Table:
    main = outcome.figures[0]
    heads = ((f"{column.title}, published", f"{_title(outcome, column.variant)}, here") for column in curve.columns)
    measured = [outcome.curve(series, column.variant, main["name"]) for column in curve.columns]
    rows = [
        (
            f"n = {size}",
            *chain.from_iterable(
                (digits(column.values[index]), digits(found[size].value) if size in found else NONE)
                for column, found in zip(curve.columns, measured, strict=True)
            ),
        )
        for index, size in enumerate(curve.sizes)
    ]
    growths = ((_growth(curve, column), _growth_here(outcome, series, column)) for column in curve.columns)
    rows.append(("exponent", *chain.from_iterable(growths)))
    title = f"published next to measured: {series}, {main['unit']} (published on two cores, here on {_cores(outcome)})"
    return Table(title, ("", *chain.from_iterable(heads)), rows)


def _cores(outcome: Outcome) -> str:
    return str(outcome.machine["cores"])


def _growth(curve: Curve, column: Column) -> str:
    found = power(dict(zip(curve.sizes, column.values, strict=True)))
    return NONE if found is None else f"{found.exponent:.2f}"


def _growth_here(outcome: Outcome, series: str, column: Column) -> str:
    found = outcome.growth(series, column.variant, outcome.figures[0]["name"])
    return NONE if found is None else f"{found.exponent:.2f}"
