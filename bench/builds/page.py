"""Turn kept figures into a page: ``python -m bench.builds.page FILE.json --out PAGE.md``.

Invariant: every figure and every verdict on the page is from the data.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.builds.judgement import Interval, Judgement, Spread, judge
from bench.markdown import table, write
from bench.primitives.page import digits
from unsnarl.lab.machine import build_of, differences
from unsnarl.statistics import CONFIDENCE

HEAD = ("", "before", "after", "after / before", "before / before", "after / after", "pairs", "verdict")
EXPECTED = ("scheduler", "build of unsnarl", "version of unsnarl")
"""Differences between two builds that are the purpose of the comparison."""


def spread_cell(spread: Spread) -> str:
    """Return a median with its quartiles."""
    return f"{digits(spread.median)} ({digits(spread.low)} to {digits(spread.high)})"


def interval_cell(interval: Interval) -> str:
    """Return a median ratio with its interval."""
    return f"{interval.median:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def row(name: str, unit: str, found: Judgement | None) -> list[str]:
    """Return the cells of one scene."""
    label = f"{name}, {unit}"
    if found is None:
        return [label, *["–"] * (len(HEAD) - 2), "no figures"]
    ratios = (found.ratio, found.before_noise, found.after_noise)
    cells = [*map(spread_cell, (found.before, found.after)), *map(interval_cell, ratios)]
    return [label, *cells, str(found.rounds), found.verdict]


def builds_section(builds: dict[str, Any]) -> str:
    """Return which builds were compared, and what else differs between their environments."""
    lines = [
        f"- {side}: {build['label']}, unsnarl {build['versions'].get('unsnarl', '?')}, files {build['package']}, "
        f"native code {build['scheduler']}"
        for side, build in builds.items()
    ]
    others = [name for name in differences(list(builds.values())) if name not in EXPECTED]
    if builds["before"]["package"] == builds["after"]["package"]:
        lines.append("- Both sides are the same build.")
    if others:
        lines.append(f"- **Not only unsnarl differs**: {', '.join(others)}.")
    return "\n".join(lines)


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
    builds, machine = data["builds"], data["builds"]["after"]
    python = machine["python"]
    rows = [row(name, scene["unit"], judge(scene["rounds"])) for name, scene in data["scenes"].items()]
    failures = [f"- {name}, {line}" for name, scene in data["scenes"].items() for line in scene["failures"]]
    failed = "\n## Runs without a figure\n\n" + "\n".join(failures) + "\n" if failures else ""
    return (
        "# Two builds of unsnarl on the hot paths\n\n"
        f"{python['implementation']} {python['version']} ({python['compiler']}, {build_of(python)}), "
        f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, {machine['libc']}; "
        f"measured by sources {machine['commit']}; taken {machine['taken']}.\n\n"
        f"{builds_section(builds)}\n\n"
        "Every figure is a time: less is better. Each round measures before, after, before, after. Shown are medians "
        f"with quartiles, and medians of the rounds' own ratios with intervals of at least {CONFIDENCE:.2%}. A "
        "build is called faster or slower only where the interval of *after / before* lies outside those of each "
        "build compared with itself. Measured by `python -m bench.builds`, rendered by `python -m bench.builds.page`."
        "\n\n" + table(HEAD, rows) + failed
    )


def main() -> None:
    """Render a file of figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.builds.page", description=__doc__)
    parser.add_argument("results", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="PAGE", help="the page (default: stdout)")
    arguments = parser.parse_args()
    text = page(json.loads(arguments.results.read_text(encoding="utf-8")))
    write(text, arguments.out)


if __name__ == "__main__":
    main()
