"""Measure every scene of two builds in alternation, and keep the figures as data.

    python -m bench.builds --before PYTHON --after PYTHON [--pairs N] [--only PATTERN]... --out FILE.json

``PYTHON`` is the interpreter of a virtual environment in which one of the builds is installed. A round measures
before, after, before, after, so that each build is also compared with itself; every figure is from a process of
its own. Measuring a scene again replaces what the file has of that scene, if the builds are still the same.
``python -m bench.builds.page`` renders the file.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import machine
from bench.builds import measured, warm_command
from bench.builds.judgement import judge, order
from unsnarl.lab.experiment import Confinement
from unsnarl.lab.running.process import RunFailed, execute, printed_figures

PAIRS = 20
LIMIT_S = 60.0
"""Seconds after which one run counts as hung."""
SIDES = ("before", "after")

Timer = Callable[[str], float]
"""Takes the name of a side; returns its figure."""
Measured = tuple[list[dict[str, float]], list[str]]
"""The figures of each round, and one line for each run that failed."""


def in_process(scene: str, pythons: dict[str, str]) -> Timer:
    """Return what measures a scene in a process of a side's interpreter, in nanoseconds."""

    def time_ns(side: str) -> float:
        command = [pythons[side], "-P", measured.__file__, scene]
        return float(printed_figures(execute(command, Confinement(), LIMIT_S).stdout)["ns"])

    return time_ns


def measure(name: str, timer: Timer, pairs: int) -> Measured:
    """Measure a scene in alternation."""
    rounds: list[dict[str, float]] = []
    failures: list[str] = []
    for number in range(pairs):
        figures: dict[str, float] = {}
        for run in order(number):
            try:
                figures[run] = timer(run.rstrip("12"))
            except (RunFailed, RuntimeError) as error:
                failures.append(f"round {number}, {run}: {error}")
        rounds.append(figures)
        print(f"{name:40} round {number} " + " ".join(f"{run} {x:.4g}" for run, x in figures.items()), file=sys.stderr)
    return rounds, failures


def measure_warm(name: str, words: tuple[str, ...], pythons: dict[str, str], pairs: int) -> Measured:
    """Return the figures of a warm command, in milliseconds; none if it cannot be warm in one of the environments."""
    try:
        with warm_command.served(pythons, words) as timer:
            return measure(name, timer, pairs)
    except RuntimeError as error:
        return [], [str(error)]


def is_chosen(name: str, patterns: list[str]) -> bool:
    """Tell whether any pattern matches the name of a scene."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def kept(path: Path, builds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the scenes that the file already has, if they are of the same builds."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    names = ("python", "package", "cpu")
    is_same = all(data["builds"][side][name] == builds[side][name] for side in SIDES for name in names)
    return dict(data["scenes"]) if is_same else {}


def parse() -> argparse.Namespace:
    """Return the command line, taken apart."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.builds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for side in SIDES:
        parser.add_argument(f"--{side}", required=True, type=os.path.abspath, metavar="PYTHON")
    parser.add_argument("--labels", nargs=2, default=list(SIDES), metavar=("BEFORE", "AFTER"), help="as two commits")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"rounds per scene (default {PAIRS})")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="scenes, as 'Queue*'; may be repeated")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    return parser.parse_args()


def main() -> None:
    """Carry out the command line."""
    arguments = parse()
    out: Path = arguments.out.absolute()
    pythons: dict[str, str] = {side: getattr(arguments, side) for side in SIDES}
    patterns: list[str] = arguments.only or ["*"]
    builds = {
        side: {"label": label} | machine.describe(pythons[side])
        for side, label in zip(SIDES, arguments.labels, strict=True)
    }
    data: dict[str, Any] = {"builds": builds, "scenes": kept(out, builds)}

    def keep(name: str, unit: str, result: Measured) -> None:
        rounds, failures = result
        data["scenes"][name] = {"unit": unit, "rounds": rounds, "failures": failures}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        found = judge(rounds)
        print(f"{name:40} {f'{found.ratio.median:.3f} {found.verdict}' if found else 'no figures'}", flush=True)

    for name in measured.SCENES:
        if is_chosen(name, patterns):
            keep(name, "ns", measure(name, in_process(name, pythons), arguments.pairs))
    words = warm_command.choose(pythons)
    warm_scene = f"warm {' '.join(words or ())}"
    if words is not None and is_chosen(warm_scene, patterns):
        keep(warm_scene, "ms", measure_warm(warm_scene, words, pythons, arguments.pairs))


if __name__ == "__main__":
    main()
