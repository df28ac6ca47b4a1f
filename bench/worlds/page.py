"""Turns kept results into one page, the losses first: ``python -m bench.worlds.page DIR --out PAGE.md``.

Invariant: every figure and every verdict on the page is from the results.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.markdown import table, write
from bench.worlds.plan import IDLE_WAITERS_CPU, STOCK
from bench.worlds.reasons import REASONS, reason_of
from bench.worlds.verdict import BOUND, LOSS, Judged, judge
from bench.worlds.world import WORLDS

NONE = "–"
TITLES = {world.name: world.title for world in WORLDS}
UNITS = {"rate_per_s": "operations/s", "cpu_us": "processor time"}


class Row(NamedTuple):
    """One variant of one case in one world."""

    world: str
    case: str
    variant: str
    judged: Judged
    result: dict[str, Any]


def values(result: dict[str, Any], variant: str, figure: str) -> dict[int, float]:
    """Return a figure of a variant by pair; runs that failed are left out."""
    runs = (run for run in result["runs"] if run["variant"] == variant and "figures" in run)
    return {run["pair"]: run["figures"][figure] for run in runs if figure in run["figures"]}


def judged(result: dict[str, Any], variant: str, figure: str) -> Judged | None:
    """Return the verdict on a variant's figure; None when no pair has all runs."""
    names = [*result["case"]["variants"][:2], variant]
    by_pair = [values(result, name, figure) for name in names]
    pairs = sorted(by_pair[0].keys() & by_pair[1].keys() & by_pair[2].keys())
    stock, again, mine = ([found[pair] for pair in pairs] for found in by_pair)
    bound = IDLE_WAITERS_CPU if figure == "cpu_us" else BOUND
    return judge(stock, again, mine, more_is_better=figure == "rate_per_s", bound=bound)


def rows(results: dict[str, dict[str, Any]]) -> Iterator[Row]:
    """Yield every variant of every case of every world."""
    for world, data in results.items():
        for name, result in data["cases"].items():
            for variant in result["case"]["variants"][2:]:
                if found := judged(result, variant, result["case"]["judged"]):
                    yield Row(world, name, variant, found, result)


def ratio_cell(row: Row) -> str:
    """Return a ratio with its interval."""
    ratio = row.judged.ratio
    return f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def per_operation(row: Row, figure: str) -> str:
    """Return a cost of an operation, stock's and the variant's."""
    cells: list[str] = []
    for variant in (STOCK, row.variant):
        found = values(row.result, variant, figure)
        cells.append(f"{statistics.median(found.values()):.3g}" if found else NONE)
    return " → ".join(cells)


def futex_cell(row: Row) -> str:
    """Return the futex calls of an operation, stock's and the variant's."""
    counts = row.result["futexes"]
    return " → ".join(NONE if (count := counts.get(name)) is None else f"{count:.3g}" for name in (STOCK, row.variant))


def others_part(row: Row) -> str:
    """Return how often the other threads of the case ran, as a multiple of stock's; empty where it was not counted."""
    stock, mine = (values(row.result, variant, "others_per_s").values() for variant in (STOCK, row.variant))
    if not stock or not mine:
        return ""
    ratio = statistics.median(mine) / statistics.median(stock)
    digits = 1 if ratio < 10 else 0
    return f"; the other threads {ratio:,.{digits}f} × as often"


def detail(row: Row) -> list[str]:
    """Return the cells of a row of the tables."""
    again = row.judged.again
    return [
        f"{row.case}, {row.variant}{others_part(row)}",
        UNITS[row.result["case"]["judged"]],
        ratio_cell(row),
        f"{again.median:.2f} ({again.low:.2f} to {again.high:.2f})",
        row.judged.verdict if row.judged.verdict != LOSS else f"**{LOSS}**",
        *(per_operation(row, figure) for figure in ("cpu_us", "switches")),
        futex_cell(row),
    ]


HEAD = (
    "",
    "judged by",
    "ratio to stock",
    "stock to itself (A/A)",
    "verdict",
    "processor µs / operation",
    "switches / operation",
    "futex calls / operation",
)


def losses_section(every: list[Row]) -> str:
    """Return all losses: those without a known reason first, then the worst first; and the reasons of the others."""
    found = [(reason_of(row.case), row) for row in every if row.judged.verdict == LOSS]
    if not found:
        return "## Losses\n\nNone.\n"
    found.sort(key=lambda loss: (loss[0] is not None, loss[1].judged.ratio.median))
    known = [reason for reason in REASONS if any(reason is one for one, _ in found)]
    lines = [
        [
            f"{TITLES[row.world]}: {(cells := detail(row))[0]}",
            str(known.index(reason) + 1) if reason else "**none known**",
            *cells[1:],
        ]
        for reason, row in found
    ]
    reasons = "".join(f"\n{place}. {reason.text}" for place, reason in enumerate(known, start=1))
    return f"## Losses\n\n{table((HEAD[0], 'reason', *HEAD[1:]), lines)}" + (f"{reasons}\n" if reasons else "")


def failures_section(results: dict[str, dict[str, Any]]) -> str:
    """Return the runs without a result; empty when all have one."""
    lines = sorted(
        {
            f"- {TITLES[world]}: {name}, {run['variant']}: {run['failed']}"
            for world, data in results.items()
            for name, result in data["cases"].items()
            for run in result["runs"]
            if "failed" in run
        }
    )
    return "\n## Runs without a result\n\n" + "\n".join(lines) + "\n" if lines else ""


def computers(machines: list[dict[str, Any]]) -> str:
    """Return the computers of the results, the most used one first; of several, with what was measured on each."""
    names = Counter(
        f"{one['cpu']}, {one['cores']} cores, Linux {one['kernel']}, {one['libc']}" for one in machines
    ).most_common()
    if len(names) == 1:
        return names[0][0]
    return "; ".join(f"{name} ({count} of {len(machines)} measurements)" for name, count in names)


def heading(results: dict[str, dict[str, Any]], every: list[Row]) -> str:
    """Return title, machine, tally, and how to read the page."""
    machines = [result["machine"] for data in results.values() for result in data["cases"].values()]
    python = machines[0]["python"]
    tally = ", ".join(
        f"{sum(row.judged.verdict == verdict for row in every)} {verdict}"
        for verdict in dict.fromkeys(row.judged.verdict for row in every)
    )
    commits, pairs = sorted({entry["commit"] for entry in machines}), sorted({row.judged.ratio.pairs for row in every})
    return (
        f"# Worlds, measured with {python['implementation']} {python['version']}\n\n"
        f"{computers(machines)}; sources {', '.join(commits)}; "
        f"last taken {max(entry['taken'] for entry in machines)}.\n\n"
        "    python -m bench.worlds --out DIR && python -m bench.worlds.page DIR --out PAGE.md\n\n"
        "Ratios above 1 are better than stock. Each pair holds two identical stock runs and one of each variant; the\n"
        "interval is that of the median over the pairs' ratios. A loss lies below the bound "
        f"({BOUND:g}; processor time where the clock gives the rate: {IDLE_WAITERS_CPU:.2f})\n"
        "and below all that stock shows against itself. Pairs: "
        f"{', '.join(map(str, pairs))}.\n\nOf {len(every)}: {tally}.\n\n"
    )


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the whole page."""
    every = list(rows(results))
    sections = [
        f"\n## {TITLES[world].capitalize()}\n\n{table(HEAD, [detail(row) for row in every if row.world == world])}"
        for world in results
    ]
    return heading(results, every) + losses_section(every) + "".join(sections) + failures_section(results)


def load(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of each world that was measured, in the order of the worlds."""
    paths = ((world.name, folder / f"{world.name}.json") for world in WORLDS)
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths if path.exists()}


def main() -> None:
    """Render a directory of results."""
    parser = argparse.ArgumentParser(prog="python -m bench.worlds.page", description=__doc__)
    parser.add_argument("results", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="PAGE", help="the page (default: stdout)")
    arguments = parser.parse_args()
    write(page(load(arguments.results)), arguments.out)


if __name__ == "__main__":
    main()
