"""Renders the report of a results directory: a Markdown page, an HTML page, JSON and plots.

The HTML page is one file that needs no network: style and plots are embedded.
Invariant: everything shown is from the results files; the same files give the
same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from unsnarl.demo.figures import TOO_FEW
from unsnarl.lab.machine import differences
from unsnarl.lab.results import beside, plots, tables
from unsnarl.lab.results.analysis import Outcome
from unsnarl.lab.results.plots import Plot
from unsnarl.lab.results.store import StoreError, read
from unsnarl.lab.results.tables import Table
from unsnarl.statistics import CONFIDENCE, FEWEST_PAIRS

MARKDOWN, HTML, SUMMARY = "report.md", "report.html", "report.json"
HOW_TO_READ = (
    "Variants alternate within each pair; a ratio to the first column is formed within the pairs, and ± after it is "
    'the standard deviation of the pairs\' ratios. ≈ and "within the noise" mark a difference whose direction the '
    f"pairs do not decide, at a confidence of {CONFIDENCE:.2%}; {TOO_FEW} marks a ratio of fewer than {FEWEST_PAIRS} "
    'pairs, which are too few to judge. "> 120 s": the run, or that of a smaller size, was ended after that time.'
)


class Section(NamedTuple):
    """The tables and plots of one results file."""

    anchor: str
    outcome: Outcome
    tables: list[Table]
    plots: list[Plot]


def load(folder: Path) -> list[Outcome]:
    """Return every result in a directory, in the order of a complete run.

    Raises:
        StoreError: there is no result, or a file has another content.
    """
    from unsnarl.lab.experiments import NAMES

    if not folder.is_dir():
        raise StoreError(f"there is no directory {folder}", f"measure first: `unsnarl lab run --out {folder}`")
    paths = sorted(path for path in folder.glob("*.json") if path.name != SUMMARY)
    if not paths:
        raise StoreError(f"there are no results in {folder}", f"measure first: `unsnarl lab run --out {folder}`")
    outcomes = [Outcome(read(path)) for path in paths]
    order = {name: index for index, name in enumerate(NAMES)}
    return sorted(outcomes, key=lambda outcome: order.get(outcome.name, len(order)))


def section(outcome: Outcome) -> Section:
    """Return tables and plots of one file of results."""
    python = outcome.machine["python"]
    anchor = f"{outcome.name}-{python['version']}"
    drawn = list(plots.plots_of(outcome, anchor)) if plots.is_available() else []
    return Section(anchor, outcome, [*beside.tables_of(outcome), *tables.tables_of(outcome)], drawn)


def write(folder: Path, outcomes: Sequence[Outcome], command: str) -> list[Path]:
    """Write all pages and plots of results into their directory; return the files.

    Raises:
        StoreError: they cannot be written.
    """
    sections = [section(outcome) for outcome in outcomes]
    texts = {
        MARKDOWN: markdown(sections, command),
        HTML: html(sections, command),
        SUMMARY: json.dumps([tables.summary(one.outcome) for one in sections], indent=1) + "\n",
    }
    texts |= {plot.file_name: plot.svg for one in sections for plot in one.plots}
    try:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"the report cannot be written: {folder}: {error.strerror}", "check its permissions") from None
    return [folder / name for name in texts]


def warnings(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one line per interpreter whose results were taken under different conditions and cannot be compared."""
    lines: list[str] = []
    for version in dict.fromkeys(_interpreter(outcome) for outcome in outcomes):
        mine = [outcome for outcome in outcomes if _interpreter(outcome) == version]
        found = differences([outcome.machine for outcome in mine])
        if not found:
            continue
        alike: list[list[Outcome]] = []
        for outcome in mine:
            group = next((g for g in alike if not differences([g[0].machine, outcome.machine])), None)
            alike.append([outcome]) if group is None else group.append(outcome)
        groups = "; ".join(", ".join(outcome.name for outcome in group) for group in alike)
        lines.append(
            f"The results of {version} were taken under different conditions: {', '.join(found)}. Alike are: {groups}."
        )
    return lines


def _interpreter(outcome: Outcome) -> str:
    python = outcome.machine["python"]
    return f"{python['implementation']} {python['version']}"


def commands(sections: Sequence[Section], command: str) -> list[str]:
    """Return the commands that measured, and the command that made the page."""
    measured = (line for one in sections for line in one.outcome.content.get("commands", []))
    return [*dict.fromkeys(measured), command]


def markdown(sections: Sequence[Section], command: str) -> str:
    """Return the page as Markdown; its plots are separate files."""
    parts = ["# The laboratory's results\n"]
    parts += [f"**{line}**\n" for line in warnings([one.outcome for one in sections])]
    parts += [HOW_TO_READ + "\n", "Made by:\n"]
    parts += [f"    {line}" for line in commands(sections, command)]
    for one in sections:
        outcome = one.outcome
        parts += [f"\n## {outcome.experiment['title']}\n", outcome.experiment["question"] + "\n"]
        parts += [f"*{outcome.experiment['source']}; `unsnarl lab run {outcome.name}`*\n"]
        parts += [f"- {line}" for line in _lines(outcome)]
        parts += ["", outcome.experiment["reading"] + "\n"]
        parts += [f"![{plot.title}]({plot.file_name})\n" for plot in one.plots]
        parts += [f"### {table.title}\n\n{tables.markdown(table)}" for table in one.tables]
    return "\n".join(parts).rstrip() + "\n"


def _lines(outcome: Outcome) -> list[str]:
    """Return what was measured where, what is missing, and what of the source cannot be repeated."""
    return [*tables.facts(outcome), *tables.absences(outcome), *beside.not_repeated(outcome)]


STYLE = """
  :root { color-scheme: light dark; --quiet: #59636e; --line: #d1d9e0 }
  @media (prefers-color-scheme: dark) { :root { --quiet: #9198a1; --line: #3d444d } }
  body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
  table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
  th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right }
  th:first-child, td:first-child { text-align: left }
  .wide { overflow-x: auto } .quiet, li { color: var(--quiet) }
  figure { margin: 1rem 0; padding: .5rem 0 }
  figure svg { max-width: 100%; height: auto } figcaption { color: var(--quiet); font-size: 13px }
  pre { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; padding: .6rem; font-size: 13px }
"""


def html(sections: Sequence[Section], command: str) -> str:
    """Return the page as one file of HTML."""
    body = ["<h1>The laboratory's results</h1>"]
    body += [f"<p><strong>{escape(line)}</strong></p>" for line in warnings([one.outcome for one in sections])]
    body.append(f"<p>{escape(HOW_TO_READ)}</p>")
    body.append("<nav><ul>" + "".join(_entry(one) for one in sections) + "</ul></nav>")
    body.append(f"<p>Made by:</p><pre>{escape(chr(10).join(commands(sections, command)))}</pre>")
    body += [_html_section(one) for one in sections]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The laboratory's results</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _entry(one: Section) -> str:
    words = f"{one.outcome.experiment['title']}, {_interpreter(one.outcome)}"
    return f'<li><a href="#{escape(one.anchor)}">{escape(words)}</a></li>'


def _html_section(one: Section) -> str:
    experiment = one.outcome.experiment
    lines = _lines(one.outcome)
    parts = [
        f'<section id="{escape(one.anchor)}"><h2>{escape(experiment["title"])}</h2>',
        f"<p>{escape(experiment['question'])}</p>",
        f'<p class="quiet">{escape(experiment["source"])}; <code>unsnarl lab run {escape(one.outcome.name)}</code></p>',
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>",
        f"<p>{escape(experiment['reading'])}</p>",
        *(
            f"<figure>{_inline(plot, one.anchor)}<figcaption>{escape(plot.title)}</figcaption></figure>"
            for plot in one.plots
        ),
        *(_html_table(table) for table in one.tables),
        "</section>",
    ]
    return "\n".join(parts)


def _inline(plot: Plot, anchor: str) -> str:
    """Return a plot with unique internal names, for a page that contains several plots."""
    prefix = re.sub(r"\W", "-", f"{anchor}-{plot.file_name.removesuffix('.svg')}-")
    svg = re.sub(r'\bid="', f'id="{prefix}', plot.svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", svg)


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in table.head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in table.rows)
    return f'<h3>{escape(table.title)}</h3><div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
