"""Renderer of the page about the primitives: ``python -m bench.primitives.page FILE.json --out PAGE.md``.

Invariant: every figure and every verdict on the page is from the results.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from bench.markdown import table, write
from bench.primitives.scene import OURS, STANDARD

NONE = "–"
COMMAND = "python -m bench.primitives --out {results}"


def digits(figure: float) -> str:
    """Return a figure with its significant digits."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:,.3g}"


def medians(scene: dict[str, Any]) -> dict[str, float]:
    """Return each library's median over the pairs."""
    pairs = scene["pairs"]
    return {name: statistics.median(pair[name] for pair in pairs) for name in pairs[0]}


def advantages(scene: dict[str, Any], other: str) -> list[float]:
    """Return, pair by pair, how many times better unsnarl is than another library."""
    found: list[float] = []
    for pair in scene["pairs"]:
        better, worse = (OURS, other) if scene["more_is_better"] else (other, OURS)
        found.append(pair[better] / pair[worse] if pair[worse] else float("inf"))
    return found


def rival(scene: dict[str, Any]) -> str | None:
    """Return the best library among those that the goal compares with."""
    every = medians(scene)
    candidates: list[str] = [name for name in scene["against"] if name in every]
    candidates.sort(key=lambda name: every[name], reverse=scene["more_is_better"])
    return candidates[0] if candidates else None


def verdict(scene: dict[str, Any]) -> tuple[str, str, str]:
    """Return the cells: how many times better (and its range), the goal, and whether it is met."""
    ours, other = medians(scene)[OURS], rival(scene)
    ratio, middle = NONE, None
    if other is not None:
        ratios = advantages(scene, other)
        middle = statistics.median(ratios)
        ratio = f"{middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    if scene["ceiling"] is not None:
        return ratio, f"at most {scene['ceiling']:g}", "met" if ours <= scene["ceiling"] else "**missed**"
    if scene["goal"] is None or middle is None:
        return ratio, NONE, NONE
    return ratio, f"{scene['goal']:.3g} ×", "met" if middle >= scene["goal"] else "**missed**"


def rows(data: dict[str, Any], names: list[str]) -> list[list[str]]:
    """Return a row for each scene."""
    lines: list[list[str]] = []
    for name, scene in data["scenes"].items():
        figures = medians(scene)
        cells = [digits(figures[library]) if library in figures else NONE for library in names]
        lines.append([f"{name}, {scene['unit']}", *cells, *verdict(scene)])
    return lines


def page(data: dict[str, Any], results: str) -> str:
    """Return the whole page."""
    machine, python = data["machine"], data["machine"]["python"]
    names = [OURS, STANDARD, *data["peers"]]
    lines = rows(data, names)
    met, missed = (sum(line[-1] == word for line in lines) for word in ("met", "**missed**"))
    versions = ", ".join(f"{name} {version}" for name, version in data["peers"].items()) or "no peers"
    build = f"{'shared library' if python['shared'] else 'static'}, {'with' if python['pgo'] else 'without'} PGO"
    interpreter = f"{python['compiler']}, {build}" if python["compiler"] else f"build {python['build']}"
    load = f" The machine had a load of {machine['load']:g} when it began." if machine.get("load", 0) >= 1 else ""
    without = "" if machine.get("has_gil", True) else " without a GIL"
    pairs = sorted({len(scene["pairs"]) for scene in data["scenes"].values()})
    return (
        f"# Primitives, measured with {python['implementation']} {python['version']}{without}\n\n"
        f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, {machine['libc']}; interpreter: "
        f"{interpreter}; {versions}; sources {machine['commit']}; last taken {machine['taken']}.\n\n"
        f"    {COMMAND.format(results=results)}\n\n"
        "The libraries take turns, and the first of them changes from pair to pair; medians of "
        f"{' or '.join(map(str, pairs))} pairs. *Better by* is the median of the pairs' own ratios, with their range "
        f"in brackets: how many times better {OURS} is than the standard library, or where the goal is about peers, "
        "than the best of them. In the asynchronous rows the standard library is asyncio, whose classes belong to one "
        f"loop. Nothing here runs under the scheduler.{load}\n\nGoals: {met} met, {missed} missed.\n\n"
        + table(["", *names, "better by", "goal", "verdict"], lines)
    )


def main() -> None:
    """Render a file of results."""
    parser = argparse.ArgumentParser(prog="python -m bench.primitives.page", description=__doc__)
    parser.add_argument("results", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="PAGE", help="the page (default: stdout)")
    arguments = parser.parse_args()
    text = page(json.loads(arguments.results.read_text(encoding="utf-8")), str(arguments.results))
    write(text, arguments.out)


if __name__ == "__main__":
    main()
