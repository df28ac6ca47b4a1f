"""Tables of an experiment's results, as rows of text for Markdown and for HTML.

Pure: an ``Outcome`` in, tables out. Invariant: a figure that was not measured is a dash, a run that
exceeded its time limit is shown as such, and an undecided difference is marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unsnarl.demo.figures import NONE, TOO_FEW, digits, times
from unsnarl.lab.results.analysis import Median, Outcome
from unsnarl.statistics import FEWEST_PAIRS, Power, Ratio

KINDS_SHOWN = 12
"""Kinds of system calls in a table: the most frequent ones."""


LIMITED = "elapsed_s"
"""The figure for which a time limit is a lower bound."""


class Table(NamedTuple):
    """A table with its title."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


def tables_of(outcome: Outcome) -> Iterator[Table]:
    """Yield every table of an experiment."""
    for figure in outcome.figures:
        table = figure_table(outcome, figure)
        if table.rows:
            yield table
    exponents = exponent_table(outcome)
    if exponents.rows:
        yield exponents
    for case in outcome.cases(traced=True):
        yield calls_table(outcome, case["name"])


def figure_table(outcome: Outcome, figure: dict[str, Any]) -> Table:
    """Return the table of one figure: a row per case, a column per variant with its ratio to the first one."""
    name = figure["name"]
    variants = outcome.variants()
    unit = f", {figure['unit']}" if figure["unit"] else ""
    notes = [f"{'more' if figure['is_better_higher'] else 'less'} is better"]
    rows: list[tuple[str, ...]] = []
    for case in outcome.cases(traced=False):
        cells = [cell(outcome, case["name"], variant["name"], name) for variant in variants]
        if any(text != NONE for text in cells):
            rows.append((case["name"], *cells))
    if any(text.endswith(f" {TOO_FEW})") for row in rows for text in row):
        notes.append(f"{TOO_FEW}: fewer than {FEWEST_PAIRS} pairs, too few to judge")
    title = f"{figure['title']}{unit} ({'; '.join(notes)})"
    return Table(title, ("", *(variant["title"] for variant in variants)), rows)


def cell(outcome: Outcome, case: str, variant: str, figure: str) -> str:
    """Return median, spread and the ratio to the first variant; ``> 120 s`` for runs that exceeded that limit."""
    median, late = outcome.median(case, variant, figure), outcome.late(case, variant)
    over = f"> {late.limit_s:g} s" if late and figure == LIMITED else ""
    if median is None:
        return over or NONE
    text = spread(median)
    if late and over:
        where = f"in {late.runs} of {late.runs + median.runs} runs" if late.runs else "at a smaller size"
        return f"{text}, but {over} {where}"
    ratio = None if variant == outcome.base() else outcome.ratio(case, variant, figure)
    return f"{text} ({verdict(ratio)})" if ratio is not None else text


def spread(median: Median) -> str:
    """Return a median with half the range of its runs in percent, such as ``12.3 ±4%``."""
    if median.runs < 2 or not median.value:
        return digits(median.value)
    half = (median.high - median.low) / 2 / abs(median.value)
    return f"{digits(median.value)} ±{half:.0%}"


def verdict(ratio: Ratio) -> str:
    """Return a ratio, marked if the pairs do not decide its direction."""
    text = times(ratio)
    return f"{text}, within the noise" if ratio.is_noise() else text


def exponent_table(outcome: Outcome) -> Table:
    """Return the table of each series' growth: exponent, and factor from the smallest to the largest size."""
    main = outcome.figures[0]["name"]
    variants = outcome.variants()
    rows: list[tuple[str, ...]] = []
    for series in outcome.series():
        cells = [growth(outcome, series, variant["name"], main) for variant in variants]
        if any(text != NONE for text in cells):
            rows.append((series, *cells))
    title = "growth: fitted exponent ± its standard error, and factor from the smallest to the largest size"
    return Table(title, ("", *(variant["title"] for variant in variants)), rows)


def growth(outcome: Outcome, series: str, variant: str, figure: str) -> str:
    """Return an exponent with its standard error and a factor, such as ``1.98 ±0.04 (81.3× for 9× the size)``."""
    curve = outcome.curve(series, variant, figure)
    power = outcome.growth(series, variant, figure)
    if power is None:
        return NONE
    (first, low), *_, (last, high) = curve.items()
    factor = f"{digits(high.value / low.value)}× for {digits(last / first)}× the size"
    return f"{power.exponent:.2f} ±{power.error:.2f} ({factor})"


def calls_table(outcome: Outcome, case: str) -> Table:
    """Return the system calls of a case by kind, the most frequent ones first."""
    variants = outcome.variants()
    kinds = outcome.calls(case)
    shown = [kind for kind in kinds if kind == "futex"] + [kind for kind in kinds if kind != "futex"][:KINDS_SHOWN]
    rows = [(kind, *(calls(outcome, case, v["name"], kind) for v in variants)) for kind in ("all", *shown)]
    return Table(f"{case}, by kind", ("", *(variant["title"] for variant in variants)), rows)


def calls(outcome: Outcome, case: str, variant: str, kind: str) -> str:
    """Return how often a variant made a system call: 0 if only other calls were counted."""
    median = outcome.median(case, variant, f"calls.{kind}")
    if median is not None:
        return f"{median.value:,.0f}"
    return "0" if outcome.median(case, variant, "calls.all") is not None else NONE


def markdown(table: Table) -> str:
    """Return a table as Markdown, columns after the first aligned right."""
    rule = ("---", *("---:" for _ in table.head[1:]))
    lines = [
        "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in (table.head, rule, *table.rows)
    ]
    return "\n".join(lines) + "\n"


def facts(outcome: Outcome) -> list[str]:
    """Return one line each on the interpreter, the build, the machine and the method."""
    from unsnarl.lab.machine import build_of

    machine, python = outcome.machine, outcome.machine["python"]
    fewest, most = outcome.pairs()
    pairs = f"{most}" if fewest == most else f"{fewest} to {most}"
    how = f"medians of {pairs} alternating pairs, ± half the range" if most else "nothing was measured"
    where = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['architecture']}, Linux {machine['kernel']}, "
        f"{machine['libc']}"
    )
    return [
        f"{python['implementation']} {python['version']} ({build_of(python)}; {python['compiler']})",
        build(machine),
        where,
        f"taken {machine['taken']}; {how}",
    ]


def build(machine: dict[str, Any]) -> str:
    """Return the measured build of unsnarl, and the versions of the peers."""
    versions: dict[str, str] = machine.get("versions", {})
    others = ", ".join(f"{name} {version_in(text)}" for name, text in versions.items() if name != "unsnarl")
    digests = f"build {machine.get('package') or 'unknown'}, scheduler {machine.get('scheduler') or 'unknown'}"
    return f"unsnarl {versions.get('unsnarl', 'of an unknown version')} ({digests}){'; ' if others else ''}{others}"


def version_in(text: str) -> str:
    """Return the version in what a program printed about itself, or all of it if there is none."""
    found = re.search(r"\d+(?:\.\d+)+[\w.+-]*", text)
    return found[0].rstrip(".") if found else text


def absences(outcome: Outcome) -> list[str]:
    """Return one line for each missing peer with the reason, and for each failed run."""
    from unsnarl.lab.presence import reasons_in_words

    failures = list(dict.fromkeys(outcome.failures()))
    return [*(f"missing: {line}" for line in reasons_in_words(outcome.absent)), *failures]


def summary(outcome: Outcome) -> dict[str, Any]:
    """Return every table's numbers as plain data."""
    cases: list[dict[str, Any]] = []
    for case in [*outcome.cases(traced=False), *outcome.cases(traced=True)]:
        figures = sorted(set(_figure_names(outcome, case["name"])))
        summaries = {name: _summary_of(outcome, case["name"], name) for name in figures}
        late = {v["name"]: outcome.late(case["name"], v["name"]) for v in outcome.variants()}
        late_as_data = {name: found._asdict() for name, found in late.items() if found}
        cases.append({**case, "figures": summaries, "late": late_as_data})
    main = outcome.figures[0]["name"]
    exponents = {
        series: {v["name"]: power._asdict() if power else None for v, power in _powers(outcome, series, main)}
        for series in outcome.series()
    }
    return {
        "experiment": outcome.name,
        "machine": outcome.machine,
        "absent": outcome.absent,
        "failed": outcome.failures(),
        "cases": cases,
        "exponents": exponents,
    }


def _powers(outcome: Outcome, series: str, figure: str) -> Iterator[tuple[dict[str, Any], Power | None]]:
    for variant in outcome.variants():
        yield variant, outcome.growth(series, variant["name"], figure)


def _figure_names(outcome: Outcome, case: str) -> Iterator[str]:
    runs: Sequence[dict[str, Any]] = outcome.content["runs"]
    for run in runs:
        if run["case"] == case:
            yield from run.get("figures", {})


def _summary_of(outcome: Outcome, case: str, figure: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variant in outcome.variants():
        median, ratio = (summarise(case, variant["name"], figure) for summarise in (outcome.median, outcome.ratio))
        if median is not None:
            found[variant["name"]] = {
                "median": median._asdict(),
                "ratio": ratio._asdict() if isinstance(ratio, Ratio) else None,
                "within_noise": ratio.is_noise() if isinstance(ratio, Ratio) else None,
            }
    return found
